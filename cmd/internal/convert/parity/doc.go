// Package parity holds conversions against real pg_upgrade, byte for byte. It is nothing but tests.
package parity
