package fuel

import "bytes"

// Sections by their number in the format, in the order they must come in.
const (
	secType      = 1
	secImport    = 2
	secFunction  = 3
	secTable     = 4
	secMemory    = 5
	secGlobal    = 6
	secExport    = 7
	secStart     = 8
	secElement   = 9
	secCode      = 10
	secData      = 11
	secDataCount = 12
)

var order = []byte{
	secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport, secStart, secElement, secDataCount, secCode, secData,
}

// module is what the pass knows of a module.
type module struct {
	sections  [13]reader // without number and size
	present   [13]bool
	names     []byte // the custom section of names, whole
	types     []signature
	functions []int // the type of each function, imported ones first
	imported  int   // functions
	globals   int
	tables    []limits // of its own
	exports   []export
	escapes   bool // an imported function may be called through a table
	declare   bool // a body makes references to functions
	loops     int

	blocks     map[int]int // types of blocks that give what a type of functions gives
	blockTypes []byte      // they are added behind the types
}

type signature struct{ params, results []byte }

type export struct {
	name  []byte
	kind  byte
	index uint32
}

type limits struct {
	kind    byte // of a table: what it holds
	min     uint32
	max     uint32
	bounded bool
}

func parse(wasm []byte) (*module, error) {
	if !bytes.HasPrefix(wasm, []byte("\x00asm\x01\x00\x00\x00")) {
		r := reader{b: wasm}
		r.fail(ErrMalformed, "no header of version 1")
		return nil, r.err
	}
	m := &module{blocks: map[int]int{}}
	if err := m.split(&reader{b: wasm, pos: 8}); err != nil {
		return nil, err
	}
	for _, step := range []struct {
		id   int
		read func(*reader)
	}{
		{secType, m.readTypes}, {secImport, m.readImports}, {secFunction, m.readFunctions}, {secTable, m.readTables},
		{secGlobal, m.readGlobals}, {secExport, m.readExports}, {secStart, m.readStart}, {secElement, m.readElements},
		{secMemory, m.readCount}, {secData, m.readCount},
	} {
		r := m.sections[step.id]
		if m.present[step.id] {
			step.read(&r)
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return m, nil
}

// split finds the sections and keeps to their order, so that none comes twice.
func (m *module) split(r *reader) error {
	last := -1
	for !r.done() {
		id := r.byte()
		part := r.sub(r.u32())
		if id == 0 {
			m.custom(part)
			continue
		}
		place := bytes.IndexByte(order, id)
		switch {
		case place < 0:
			r.fail(ErrUnknown, "section %d, which ends", id)
		case place <= last:
			r.fail(ErrMalformed, "section %d out of order, which ends", id)
		default:
			last = place
			m.sections[id], m.present[id] = part, true
		}
	}
	return r.err
}

// custom keeps the names of functions, for the trace of a trap. They stay right, since no
// index changes.
func (m *module) custom(r reader) {
	if name := r.bytes(r.count()); r.ok() && string(name) == "name" && m.names == nil {
		m.names = r.b
	}
}

// end makes sure that a section's elements fill it.
func (r *reader) end() {
	if r.ok() && r.left() > 0 {
		r.fail(ErrMalformed, "%d bytes too many", r.left())
	}
}

func (m *module) readCount(r *reader) { r.count() }

func (m *module) readTypes(r *reader) {
	for range r.count() {
		if form := r.byte(); form != 0x60 {
			r.fail(ErrUnknown, "type %#x", form)
		}
		t := signature{r.valueTypes(), r.valueTypes()}
		if !r.ok() {
			return
		}
		m.types = append(m.types, t)
	}
	r.end()
}

func (r *reader) valueTypes() []byte {
	n := r.count()
	if n > maxParams {
		r.fail(ErrMalformed, "function of %d values", n)
	}
	from := r.pos
	for range n {
		if r.valueType(); !r.ok() {
			return nil
		}
	}
	return r.b[from:r.pos]
}

func (m *module) readImports(r *reader) {
	for range r.count() {
		r.bytes(r.count())
		r.bytes(r.count())
		switch kind := r.byte(); kind {
		case 0:
			m.functions = append(m.functions, int(r.index(len(m.types), "type")))
			m.imported++
		case 1:
			r.tableType()
		case 2:
			r.limits()
		case 3:
			r.globalType()
			m.globals++
		default:
			r.fail(ErrUnknown, "import of kind %d", kind)
		}
		if !r.ok() {
			return
		}
	}
	r.end()
}

func (m *module) readFunctions(r *reader) {
	for range r.count() {
		if m.functions = append(m.functions, int(r.index(len(m.types), "type"))); !r.ok() {
			return
		}
	}
	r.end()
}

func (m *module) readTables(r *reader) {
	total := uint64(0)
	for range r.count() {
		t := r.tableType()
		if total += uint64(t.min); t.min > maxTable || total > maxTablesTotal {
			r.fail(ErrMalformed, "table of %d elements", t.min)
		}
		if m.tables = append(m.tables, t); !r.ok() {
			return
		}
	}
	r.end()
}

func (r *reader) tableType() limits {
	kind := r.referenceType()
	l := r.limits()
	l.kind = kind
	return l
}

func (r *reader) limits() (l limits) {
	flag := r.byte()
	if flag > 1 {
		r.fail(ErrUnknown, "limits %#x", flag)
	}
	l.min = r.u32()
	if l.bounded = flag == 1; l.bounded {
		l.max = r.u32()
	}
	return l
}

func (r *reader) globalType() {
	r.valueType()
	if mutable := r.byte(); mutable > 1 {
		r.fail(ErrUnknown, "mutability %#x", mutable)
	}
}

func (m *module) readGlobals(r *reader) {
	for range r.count() {
		r.globalType()
		m.constant(r)
		if !r.ok() {
			return
		}
		m.globals++
	}
	r.end()
}

// constant reads an expression that can be told before the module runs.
func (m *module) constant(r *reader) {
	s := scope{functions: len(m.functions), globals: m.globals}
	for r.ok() {
		switch op, sub, named := r.instruction(&s); {
		case op == opEnd:
			return
		case op == opRefFunc:
			m.refer(named)
		case op >= 0x41 && op <= 0x44, op == opGlobalGet, op == 0xd0, op == opVector && sub == 0x0c:
		default:
			r.fail(ErrUnknown, "instruction %#x in a constant, which ends", op)
		}
	}
}

// refer notes a function that can be called through a reference.
func (m *module) refer(function uint32) { m.escapes = m.escapes || int(function) < m.imported }

func (m *module) readExports(r *reader) {
	wrapped := 0
	for range r.count() {
		e := export{name: r.bytes(r.count()), kind: r.byte()}
		switch e.kind {
		case 0:
			e.index = r.index(len(m.functions), "function")
			if r.ok() {
				wrapped += len(m.types[m.functions[e.index]].params)
				m.refer(e.index)
			}
		case 1, 2:
			e.index = r.u32()
		case 3:
			e.index = r.index(m.globals, "global")
		default:
			r.fail(ErrUnknown, "export of kind %d", e.kind)
		}
		if string(e.name) == Global {
			r.fail(ErrMalformed, "an export named %s, which is the host's", Global)
		}
		if wrapped > maxWrapped {
			r.fail(ErrMalformed, "too many parameters of exported functions")
		}
		if !r.ok() {
			return
		}
		m.exports = append(m.exports, e)
	}
	r.end()
}

func (m *module) readStart(r *reader) {
	r.index(len(m.functions), "function")
	r.end()
}

// readElements looks for functions in segments of all eight kinds: bit 0 is for passive or
// declared, bit 1 for a table's number or declared, bit 2 for expressions.
func (m *module) readElements(r *reader) {
	for range r.count() {
		flags := r.u32()
		if flags > 7 {
			r.fail(ErrUnknown, "element segment %d", flags)
		}
		active, expressions := flags&1 == 0, flags&4 != 0
		if active && flags&2 != 0 {
			r.u32()
		}
		if active {
			m.constant(r)
		}
		if flags&3 != 0 {
			if expressions {
				r.referenceType()
			} else if k := r.byte(); k != 0 {
				r.fail(ErrUnknown, "element kind %#x", k)
			}
		}
		for range r.count() {
			if expressions {
				m.constant(r)
			} else {
				m.refer(r.index(len(m.functions), "function"))
			}
			if !r.ok() {
				return
			}
		}
		if !r.ok() {
			return
		}
	}
	r.end()
}
