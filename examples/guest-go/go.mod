module example.com/guest-go

go 1.26.0

require github.com/headroom-lb/headroom v0.0.0

require (
	github.com/tetratelabs/wazero v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/headroom-lb/headroom => ../..
