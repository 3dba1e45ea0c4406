// Package discovery keeps a balancer's endpoints as a source says they are.
//
//	Source    where endpoints come from: [Static], [File], or one's own
//	Snapshot  all endpoints at one moment, numbered
//	Keeper    brings snapshots to a balancer, and takes nothing away in haste
//
//	keeper := discovery.NewKeeper(balancer, discovery.Config{})
//	err := keeper.Follow(ctx, &discovery.File{Path: "endpoints.json"})
//
// Sources that need a library of their own are modules of their own: host/discovery/dns and
// host/discovery/kubernetes.
//
// An endpoint is who its name says. What a balancer knows of it stays as long as the name does,
// whatever becomes of its address, weight or place in the list. A source whose replicas have no
// lasting names names them by their addresses.
package discovery
