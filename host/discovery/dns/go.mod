module github.com/headroom-lb/headroom/host/discovery/dns

go 1.26.0

toolchain go1.26.8

require (
	github.com/headroom-lb/headroom v0.0.0
	github.com/miekg/dns v1.1.73
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/tetratelabs/wazero v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/headroom-lb/headroom => ../../..
