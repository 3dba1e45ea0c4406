//go:build !unix

package demo

import "time"

// cpuTime is not known on this system; the table says so.
func cpuTime() time.Duration { return 0 }
