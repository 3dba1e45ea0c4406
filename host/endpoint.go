package host

import (
	"fmt"
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// Endpoint is a replica as the host knows it.
type Endpoint struct {
	Name     string // stable identity; must be unique and not empty
	Addr     string // where it is reached, in the adapter's terms: for HTTP a base URL
	Locality string // such as its zone; engine.LocalityOf numbers it
	Weight   uint32 // zero counts as one
	Priority uint8  // lower is preferred
	Status   engine.Status
}

// fleet is one immutable version of the endpoints. A slot is a position in it.
type fleet struct {
	endpoints  []Endpoint
	candidates []engine.Candidate
	byID       map[engine.ID]int
}

func newFleet(eps []Endpoint) (*fleet, error) {
	f := &fleet{endpoints: slices.Clone(eps), byID: make(map[engine.ID]int, len(eps))}
	localities := map[uint32]string{}
	for i, ep := range eps {
		if ep.Name == "" {
			return nil, fmt.Errorf("%w: endpoint %d has no name", ErrEndpoint, i)
		}
		id := engine.IDOf(ep.Name)
		if j, ok := f.byID[id]; ok {
			if eps[j].Name == ep.Name {
				return nil, fmt.Errorf("%w: %q stands twice, at %d and %d", engine.ErrDuplicateID, ep.Name, j, i)
			}
			return nil, fmt.Errorf("%w: %q and %q hash alike; rename one", engine.ErrDuplicateID, eps[j].Name, ep.Name)
		}
		f.byID[id] = i
		locality := engine.LocalityOf(ep.Locality)
		if name, ok := localities[locality]; ok && name != ep.Locality {
			return nil, fmt.Errorf("%w: localities %q and %q hash alike; rename one", engine.ErrTopology, name, ep.Locality)
		}
		localities[locality] = ep.Locality
		f.candidates = append(f.candidates, engine.Candidate{
			ID: id, Weight: engine.Weight(ep.Weight), Locality: locality,
			Priority: ep.Priority, Status: ep.Status,
		})
	}
	return f, nil
}

func (f *fleet) withStatus(slot int, s engine.Status) *fleet {
	next := &fleet{endpoints: slices.Clone(f.endpoints), candidates: slices.Clone(f.candidates), byID: f.byID}
	next.endpoints[slot].Status, next.candidates[slot].Status = s, s
	return next
}

// name is an endpoint's name, or empty for one that is not of this fleet.
func (f *fleet) name(id engine.ID) string {
	if slot, ok := f.byID[id]; ok {
		return f.endpoints[slot].Name
	}
	return ""
}
