//go:build race

package host

// racing says that the race detector watches, under which everything takes some ten times as long.
const racing = true
