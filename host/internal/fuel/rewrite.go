package fuel

// rewrite puts the module together again, with what is added behind what was there.
func (m *module) rewrite(allowance func(export string) int64) ([]byte, error) {
	bodies, err := m.code()
	if err != nil {
		return nil, err
	}
	w := m.wrappers(allowance)
	out := make([]byte, 0, 8+2*len(m.sections[secCode].b)+len(m.sections[secData].b))
	out = append(out, "\x00asm\x01\x00\x00\x00"...)
	for _, id := range order {
		var body []byte
		switch id {
		case secType:
			body = m.grown(id, m.blockTypes, len(m.blocks))
		case secFunction:
			body = m.grown(id, w.types, len(w.bodies))
		case secTable:
			body = m.cappedTables()
		case secGlobal:
			global := append(appendS64([]byte{typeI64, 1, opI64Const}, allowance("")), opEnd)
			body = m.grown(id, global, 1)
		case secExport:
			body = w.exports
		case secElement:
			if body = m.sections[id].b; m.declare {
				body = m.grown(id, m.declaration(), 1)
			}
		case secCode:
			body = appendU32(nil, uint32(len(bodies)+len(w.bodies)))
			for _, b := range append(bodies, w.bodies...) {
				body = append(appendU32(body, uint32(len(b))), b...)
			}
		default:
			body = m.sections[id].b
		}
		if m.present[id] || len(body) > 1 { // more than a count of zero
			out = append(appendU32(append(out, id), uint32(len(body))), body...)
		}
	}
	if m.names != nil {
		out = append(appendU32(append(out, 0), uint32(len(m.names))), m.names...)
	}
	return out, nil
}

// grown is a section that is a vector, with n more elements at its end.
func (m *module) grown(id byte, elements []byte, n int) []byte {
	r := m.sections[id]
	have := uint32(0)
	if m.present[id] {
		have = r.u32()
	}
	return append(append(appendU32(nil, have+uint32(n)), r.b[r.pos:]...), elements...)
}

// cappedTables bounds tables that the module can grow without end.
func (m *module) cappedTables() []byte {
	out := appendU32(nil, uint32(len(m.tables)))
	for _, t := range m.tables {
		if !t.bounded || t.max > maxTable {
			t.max = maxTable
		}
		out = appendU32(appendU32(append(out, t.kind, 1), t.min), t.max)
	}
	return out
}

// declaration is an element segment that names the exported functions: an export lets a body
// make a reference to a function, and the exports lead elsewhere now.
func (m *module) declaration() []byte {
	n, list := uint32(0), []byte(nil)
	for _, e := range m.exports {
		if e.kind == 0 {
			n++
			list = appendU32(list, e.index)
		}
	}
	return append(appendU32([]byte{3, 0}, n), list...)
}

type wrappers struct {
	types   []byte
	bodies  [][]byte
	exports []byte
}

// wrappers makes for each exported function one that fills the counter and calls it, and lets
// the export lead there.
func (m *module) wrappers(allowance func(export string) int64) (w wrappers) {
	w.exports = appendU32(nil, uint32(len(m.exports)+1))
	for _, e := range m.exports {
		index := e.index
		if e.kind == 0 {
			index = uint32(len(m.functions) + len(w.bodies))
			t := m.functions[e.index]
			body := appendS64([]byte{0, opI64Const}, allowance(string(e.name)))
			body = appendU32(append(body, opGlobalSet), uint32(m.globals))
			for p := range m.types[t].params {
				body = appendU32(append(body, opLocalGet), uint32(p))
			}
			body = append(appendU32(append(body, opCall), e.index), opEnd)
			w.types = appendU32(w.types, uint32(t))
			w.bodies = append(w.bodies, body)
		}
		w.export(e.name, e.kind, index)
	}
	w.export([]byte(Global), 3, uint32(m.globals))
	return w
}

func (w *wrappers) export(name []byte, kind byte, index uint32) {
	w.exports = append(appendU32(w.exports, uint32(len(name))), name...)
	w.exports = appendU32(append(w.exports, kind), index)
}
