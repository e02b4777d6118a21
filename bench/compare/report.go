package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// A row is what the table says of a contestant. Ratios are medians over the ratios of each round: to the floor, above 1 is
// slower; to the peer, above 1 is faster.
type row struct {
	Name             string  `json:"name"`
	Bytes            int64   `json:"bytes"`
	Median, Min, Max float64 // seconds
	Rate             float64 `json:"gb_per_second"`
	Floor            float64 `json:"times_the_floor,omitempty"`
	Peer             float64 `json:"times_faster_than_peer,omitempty"`
}

func (b *bench) rows() (rows []row) {
	var peer *contestant
	for _, c := range b.contestants {
		if c.name == peerName {
			peer = c
		}
	}
	for _, c := range b.contestants {
		seconds := ratios(c.times, nil)
		r := row{Name: c.name, Bytes: c.bytes, Median: median(seconds), Min: slices.Min(seconds), Max: slices.Max(seconds)}
		r.Rate = float64(c.bytes) / r.Median / 1e9
		if c.floor != nil {
			r.Floor = median(ratios(c.times, b.fastest(c.floor)))
		}
		if peer != nil && c != peer {
			r.Peer = median(ratios(peer.times, c.times))
		}
		rows = append(rows, r)
	}
	return rows
}

// fastest is the times of the way of writing that is the faster: the floor of a mode comes as two contestants, one after the other.
func (b *bench) fastest(floor *contestant) []time.Duration {
	other := b.contestants[slices.Index(b.contestants, floor)+1]
	if median(ratios(other.times, nil)) < median(ratios(floor.times, nil)) {
		return other.times
	}
	return floor.times
}

// ratios is a over b, pair by pair, or the seconds of a without b.
func ratios(a, b []time.Duration) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		if all[i] = a[i].Seconds(); b != nil {
			all[i] /= b[i].Seconds()
		}
	}
	return all
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// report prints the table, and writes the files that were asked for.
func (b *bench) report(w io.Writer) error {
	rows := b.rows()
	fmt.Fprintf(w, "medians of %d rounds, %d workers\n", b.rounds, b.jobs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tseconds\tmin\tmax\tbytes\tGB/s\tof the floor\tfaster than pg_upgrade\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.3f\t%d\t%.2f\t%s\t%s\t\n", r.Name, r.Median, r.Min, r.Max, r.Bytes, r.Rate, times(r.Floor), times(r.Peer))
	}
	return errors.Join(t.Flush(), b.writeCSV(), b.writeJSON(rows))
}

func times(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f x", ratio)
}

func (b *bench) writeCSV() error {
	if b.csv == "" {
		return nil
	}
	records := [][]string{{"name", "round", "seconds", "bytes"}}
	for _, c := range b.contestants {
		for i, took := range c.times {
			records = append(records, []string{c.name, strconv.Itoa(i + 1), fmt.Sprint(took.Seconds()), strconv.FormatInt(c.bytes, 10)})
		}
	}
	f, err := os.Create(b.csv)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(f).WriteAll(records), f.Close())
}

func (b *bench) writeJSON(rows []row) error {
	if b.asJSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.asJSON, append(text, '\n'), 0o666)
}
