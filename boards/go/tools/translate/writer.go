// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// An item is a value on WebAssembly's stack: an expression that was not evaluated yet.
type item struct {
	text    string
	wide    bool // i64
	isBool  bool
	isConst bool
	value   int64    // of a constant
	locals  []string // that it reads
	reads   bool     // the memory or a global
}

// A frame is a block that has begun.
type frame struct {
	op     byte // block, loop, if
	label  string
	isUsed bool // somebody jumps to the label
	result string
	wide   bool
	height int    // of the stack below
	orElse string // the label of an if's else
}

const (
	opBlock = 0x02
	opLoop  = 0x03
	opIf    = 0x04
	opElse  = 0x05
	opEnd   = 0x0b
)

// A writer writes one function.
type writer struct {
	module   *module
	names    []string
	function *function
	called   map[int]bool // the types of calls through the table
	out      bytes.Buffer
	code     reader
	lines    []string
	stack    []item
	frames   []frame
	temps    []byte // types
	labels   int
}

func (w *writer) line(text string, values ...interface{}) {
	w.lines = append(w.lines, fmt.Sprintf(text, values...))
}

func (w *writer) push(i item) { w.stack = append(w.stack, i) }

func (w *writer) pop() item {
	top := w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	return top
}

func (w *writer) temp(wide bool) string {
	t := byte(i32)
	if wide {
		t = i64
	}
	w.temps = append(w.temps, t)
	return fmt.Sprintf("t%d", len(w.temps)-1)
}

// number is the item's text as an integer.
func (i item) number() string {
	if i.isBool {
		return "bit(" + i.text + ")"
	}
	return i.text
}

// condition is the item's text as a bool.
func (i item) condition() string {
	if i.isBool {
		return i.text
	}
	return i.text + " != 0"
}

func (i item) not() string {
	if i.isBool {
		return "!(" + i.text + ")"
	}
	return i.text + " == 0"
}

// signed is the item's text as a signed integer.
func (i item) signed() string {
	kind, value := "int32", int64(int32(i.value))
	if i.wide {
		kind, value = "int64", i.value
	}
	if i.isConst {
		return fmt.Sprint(value)
	}
	return kind + "(" + i.number() + ")"
}

// made is an expression of others.
func made(text string, wide bool, of ...item) item {
	result := item{text: text, wide: wide}
	for _, part := range of {
		result.locals = append(result.locals, part.locals...)
		result.reads = result.reads || part.reads
	}
	return result
}

func compared(text string, of ...item) item {
	result := made(text, false, of...)
	result.isBool = true
	return result
}

// settle evaluates what is on the stack and what something that follows would change.
func (w *writer) settle(changes func(item) bool) {
	for at, i := range w.stack {
		if i.isConst || !changes(i) {
			continue
		}
		temp := w.temp(i.wide)
		w.line("%s = %s", temp, i.number())
		w.stack[at] = item{text: temp, wide: i.wide}
	}
}

func (w *writer) settleReads() { w.settle(func(i item) bool { return i.reads }) }

func (w *writer) settleLocal(local string) {
	w.settle(func(i item) bool {
		for _, read := range i.locals {
			if read == local {
				return true
			}
		}
		return false
	})
}

// A temp is assigned once, but for a block's result, which nobody has on the stack before its end.
func (w *writer) settleAll() {
	w.settle(func(i item) bool { return i.reads || len(i.locals) > 0 || i.isBool || !isTemp.MatchString(i.text) })
}

var isTemp = regexp.MustCompile(`^t\d+$`)

// leave writes what a jump to the frame does.
func (w *writer) leave(depth int) string {
	if depth == len(w.frames) {
		return w.giveBack()
	}
	f := &w.frames[len(w.frames)-1-depth]
	f.isUsed = true
	if f.op != opLoop && f.result != "" {
		return fmt.Sprintf("%s = %s\ngoto %s", f.result, w.stack[len(w.stack)-1].number(), f.label)
	}
	return "goto " + f.label
}

func (w *writer) giveBack() string {
	if len(w.module.types[w.function.signature].results) == 0 {
		return "return"
	}
	return "return " + w.stack[len(w.stack)-1].number()
}

func (w *writer) write(name string) {
	s := w.module.types[w.function.signature]
	w.code.Write(w.function.code)
	isDead := false
	for w.code.Len() > 0 {
		op := w.code.byte()
		if isDead {
			isDead = w.skip(op)
		} else {
			isDead = w.instruction(op)
		}
	}
	body := w.dropUnread(strings.Join(w.lines, "\n"))
	fmt.Fprintf(&w.out, "\nfunc (m *machine) %s%s {\n", name, s)
	w.declare(body)
	fmt.Fprintf(&w.out, "%s\n}\n", body)
}

// dropUnread leaves out the variables of results that nobody reads.
func (w *writer) dropUnread(body string) string {
	for i := range w.temps {
		name := fmt.Sprintf("t%d", i)
		if len(regexp.MustCompile(`\b`+name+`\b`).FindAllString(body, 2)) == 1 {
			body = regexp.MustCompile(`(?m)^`+name+` = (m\.\w+\(.*\))$`).ReplaceAllString(body, "$1")
		}
	}
	return body
}

// declare writes the variables, all at the beginning, because no goto may jump over one.
func (w *writer) declare(body string) {
	byType := map[byte][]string{}
	var unread []string
	variable := func(name string, t byte) {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(body) {
			return
		}
		byType[t] = append(byType[t], name)
		assigned := len(regexp.MustCompile(`(?m)^`+name+` = `).FindAllString(body, -1))
		if assigned == len(regexp.MustCompile(`\b`+name+`\b`).FindAllString(body, -1)) {
			unread = append(unread, name)
		}
	}
	parameters := len(w.module.types[w.function.signature].parameters)
	for i, t := range w.function.locals[parameters:] {
		variable(fmt.Sprintf("l%d", parameters+i), t)
	}
	for i, t := range w.temps {
		variable(fmt.Sprintf("t%d", i), t)
	}
	for _, t := range []byte{i32, i64} {
		if len(byType[t]) > 0 {
			fmt.Fprintf(&w.out, "var %s %s\n", strings.Join(byType[t], ", "), goType(t))
		}
	}
	for _, name := range unread {
		fmt.Fprintf(&w.out, "_ = %s\n", name)
	}
}

// skip passes over an instruction that is never reached. It returns whether what follows is dead, too.
func (w *writer) skip(op byte) bool {
	switch op {
	case opBlock, opLoop, opIf:
		w.code.byte()
		w.frames = append(w.frames, frame{op: 0})
	case opElse:
		if f := w.frames[len(w.frames)-1]; f.op != 0 {
			return w.instruction(op)
		}
	case opEnd:
		if len(w.frames) == 0 {
			return true
		}
		if f := w.frames[len(w.frames)-1]; f.op == 0 {
			w.frames = w.frames[:len(w.frames)-1]
			return true
		}
		return w.end(true)
	default:
		w.skipOperands(op)
	}
	return true
}

func (w *writer) skipOperands(op byte) {
	switch {
	case op == 0x0e:
		for count := w.code.number(); count >= 0; count-- {
			w.code.number()
		}
	case op == 0x11, op >= 0x28 && op <= 0x3e:
		w.code.number()
		w.code.number()
	case op == 0x0c, op == 0x0d, op == 0x10, op >= 0x20 && op <= 0x24, op == 0x3f, op == 0x40:
		w.code.number()
	case op == 0x41, op == 0x42:
		w.code.signed()
	case op == 0xfc:
		if w.code.number() == 10 {
			w.code.number()
		}
		w.code.number()
	}
}

// begin begins a block.
func (w *writer) begin(op byte) {
	f := frame{op: op, label: fmt.Sprintf("L%d", w.labels)}
	w.labels++
	if t := w.code.byte(); t != 0x40 {
		f.wide = t == i64
		f.result = w.temp(f.wide)
	}
	var condition item
	if op == opIf {
		condition = w.pop()
	}
	w.settleAll()
	f.height = len(w.stack)
	switch op {
	case opLoop:
		w.line("%s:", f.label)
	case opIf:
		f.orElse = f.label + "e"
		w.line("if %s {\ngoto %s\n}", condition.not(), f.orElse)
	}
	w.frames = append(w.frames, f)
}

// end ends a block. It returns whether what follows is dead.
func (w *writer) end(isDead bool) bool {
	if len(w.frames) == 0 {
		if !isDead && len(w.module.types[w.function.signature].results) > 0 {
			w.line("%s", w.giveBack())
		}
		return true
	}
	f := w.frames[len(w.frames)-1]
	w.frames = w.frames[:len(w.frames)-1]
	if !isDead && f.result != "" {
		w.line("%s = %s", f.result, w.pop().number())
	}
	if f.orElse != "" { // there was no else
		w.line("%s:", f.orElse)
		isDead = false
	}
	if f.isUsed && f.op != opLoop {
		w.line("%s:", f.label)
		isDead = false
	}
	w.stack = w.stack[:f.height]
	if f.result != "" {
		w.push(item{text: f.result, wide: f.wide})
	}
	return isDead
}

func (w *writer) call(name string, s signature, before ...string) {
	first := len(w.stack) - len(s.parameters)
	arguments := before
	for _, argument := range w.stack[first:] {
		arguments = append(arguments, argument.number())
	}
	w.stack = w.stack[:first]
	w.settleReads()
	call := fmt.Sprintf("m.%s(%s)", name, strings.Join(arguments, ", "))
	if len(s.results) == 0 {
		w.line("%s", call)
		return
	}
	wide := s.results[0] == i64
	temp := w.temp(wide)
	w.line("%s = %s", temp, call)
	w.push(item{text: temp, wide: wide})
}

// address is that of an access, with its offset.
func (w *writer) address(i item) string {
	w.code.number() // how it is aligned
	offset := w.code.number()
	if offset == 0 {
		return i.number()
	}
	return fmt.Sprintf("%s + %d", i.number(), offset)
}

// instruction returns whether what follows is dead.
func (w *writer) instruction(op byte) bool {
	switch {
	case op == 0x00:
		w.line("panic(\"unreachable\")")
		return true
	case op == 0x01:
	case op >= opBlock && op <= opIf:
		w.begin(op)
	case op == opElse:
		f := &w.frames[len(w.frames)-1]
		if f.result != "" && len(w.stack) > f.height {
			w.line("%s = %s", f.result, w.pop().number())
		}
		f.isUsed = true
		w.line("goto %s\n%s:", f.label, f.orElse)
		f.orElse = ""
		w.stack = w.stack[:f.height]
	case op == opEnd:
		return w.end(false)
	case op == 0x0c:
		w.line("%s", w.leave(w.code.number()))
		return true
	case op == 0x0d:
		condition := w.pop().condition()
		w.line("if %s {\n%s\n}", condition, w.leave(w.code.number()))
	case op == 0x0e:
		w.line("switch %s {", w.pop().number())
		for i, count := 0, w.code.number(); i <= count; i++ {
			if where := w.leave(w.code.number()); i < count {
				w.line("case %d:\n%s", i, where)
			} else {
				w.line("default:\n%s\n}", where)
			}
		}
		return true
	case op == 0x0f:
		w.line("%s", w.giveBack())
		return true
	case op == 0x10:
		index := w.code.number()
		w.call(w.names[index], w.module.types[w.module.functions[index].signature])
	case op == 0x11:
		index := w.code.number()
		w.code.number()
		w.called[index] = true
		w.call(fmt.Sprintf("indirect%d", index), w.module.types[index], w.pop().number())
	case op == 0x1a:
		w.pop()
	case op == 0x1b:
		w.choose()
	case op >= 0x20 && op <= 0x24:
		w.variable(op)
	case op >= 0x28 && op <= 0x35:
		w.load(op)
	case op >= 0x36 && op <= 0x3e:
		w.store(op)
	case op == 0x3f:
		w.code.number()
		w.push(item{text: "uint32(len(m.memory)>>16)", reads: true})
	case op == 0x40:
		w.code.number()
		w.call("grow", signature{[]byte{i32}, []byte{i32}})
	case op == 0x41, op == 0x42:
		value := w.code.signed()
		text := fmt.Sprint(uint64(value))
		if op == 0x41 {
			text = fmt.Sprint(uint32(value))
		}
		w.push(item{text: text, wide: op == 0x42, isConst: true, value: value})
	case op == 0xfc:
		w.bulk()
	default:
		w.arithmetic(op)
	}
	return false
}

func (w *writer) choose() {
	condition, other, one := w.pop(), w.pop(), w.pop()
	temp := w.temp(one.wide)
	w.line("%s = %s\nif %s {\n%s = %s\n}", temp, other.number(), condition.condition(), temp, one.number())
	w.push(item{text: temp, wide: one.wide})
}

func (w *writer) variable(op byte) {
	index := w.code.number()
	local, global := fmt.Sprintf("l%d", index), fmt.Sprintf("m.global[%d]", index)
	switch op {
	case 0x20:
		w.push(item{text: local, wide: w.function.locals[index] == i64, locals: []string{local}})
	case 0x21, 0x22:
		value := w.pop()
		w.settleLocal(local)
		w.line("%s = %s", local, value.number())
		if op == 0x22 {
			w.push(item{text: local, wide: value.wide, locals: []string{local}})
		}
	case 0x23:
		w.push(item{text: global, reads: true})
	case 0x24:
		value := w.pop()
		w.settleReads()
		w.line("%s = %s", global, value.number())
	}
}

// How a load makes its value of what get returns: %s.
var loads = map[byte]string{
	0x28: "m.get32(%s)", 0x29: "m.get64(%s)",
	0x2c: "uint32(int8(m.get8(%s)))", 0x2d: "m.get8(%s)",
	0x2e: "uint32(int16(m.get16(%s)))", 0x2f: "m.get16(%s)",
	0x30: "uint64(int8(m.get8(%s)))", 0x31: "uint64(m.get8(%s))",
	0x32: "uint64(int16(m.get16(%s)))", 0x33: "uint64(m.get16(%s))",
	0x34: "uint64(int32(m.get32(%s)))", 0x35: "uint64(m.get32(%s))",
}

func (w *writer) load(op byte) {
	text, isKnown := loads[op]
	if !isKnown {
		panic(fmt.Sprintf("instruction 0x%x is not known", op))
	}
	at := w.pop()
	result := made(fmt.Sprintf(text, w.address(at)), op == 0x29 || op >= 0x30, at)
	result.reads = true
	w.push(result)
}

var stores = map[byte]string{
	0x36: "m.put32(%s, %s)", 0x37: "m.put64(%s, %s)", 0x3a: "m.put8(%s, %s)", 0x3b: "m.put16(%s, %s)",
	0x3c: "m.put8(%s, uint32(%s))", 0x3d: "m.put16(%s, uint32(%s))", 0x3e: "m.put32(%s, uint32(%s))",
}

func (w *writer) store(op byte) {
	text, isKnown := stores[op]
	if !isKnown {
		panic(fmt.Sprintf("instruction 0x%x is not known", op))
	}
	value, at := w.pop(), w.pop()
	w.settleReads()
	number := value.number()
	if value.isConst && op >= 0x3c {
		number = fmt.Sprint(uint32(value.value))
	}
	w.line(text, w.address(at), number)
}

func (w *writer) bulk() {
	op := w.code.number()
	w.code.number()
	three := signature{parameters: []byte{i32, i32, i32}}
	switch op {
	case 10:
		w.code.number()
		w.call("copy", three)
	case 11:
		w.call("fill", three)
	default:
		panic(fmt.Sprintf("instruction 0xfc %d is not known", op))
	}
}

// In the order of the instructions: from 0x46, and 0x51 for i64; from 0x6a, and 0x7c.
var (
	comparisons = []string{"==", "!=", "<s", "<", ">s", ">", "<=s", "<=", ">=s", ">="}
	operations  = []string{"+", "-", "*", "/s", "/", "%s", "%", "&", "|", "^", "<<", ">>s", ">>"}
)

func (w *writer) arithmetic(op byte) {
	switch {
	case op == 0x45 || op == 0x50:
		value := w.pop()
		w.push(compared(value.not(), value))
	case op >= 0x46 && op <= 0x4f:
		w.compare(comparisons[op-0x46])
	case op >= 0x51 && op <= 0x5a:
		w.compare(comparisons[op-0x51])
	case op >= 0x6a && op <= 0x76:
		w.operate(operations[op-0x6a], false)
	case op >= 0x7c && op <= 0x88:
		w.operate(operations[op-0x7c], true)
	case op == 0xa7:
		value := w.pop()
		w.push(made("uint32("+value.number()+")", false, value))
	case op == 0xac:
		value := w.pop()
		w.push(made("uint64(int32("+value.number()+"))", true, value))
	case op == 0xad:
		value := w.pop()
		w.push(made("uint64("+value.number()+")", true, value))
	case op == 0xc0:
		value := w.pop()
		w.push(made("uint32(int8("+value.number()+"))", false, value))
	case op == 0xc1:
		value := w.pop()
		w.push(made("uint32(int16("+value.number()+"))", false, value))
	default:
		panic(fmt.Sprintf("instruction 0x%x is not known", op))
	}
}

func (w *writer) compare(how string) {
	right, left := w.pop(), w.pop()
	sign := strings.TrimSuffix(how, "s")
	if sign != how {
		w.push(compared(left.signed()+" "+sign+" "+right.signed(), left, right))
		return
	}
	w.push(compared(left.number()+" "+sign+" "+right.number(), left, right))
}

func (w *writer) operate(how string, wide bool) {
	right, left := w.pop(), w.pop()
	sign := strings.TrimSuffix(how, "s")
	kind, bits := "uint32", int64(31)
	if wide {
		kind, bits = "uint64", 63
	}
	l, r := left.number(), right.number()
	if left.isConst && right.isConst {
		l = kind + "(" + l + ")" // not computed without limits
	}
	if sign == "<<" || sign == ">>" {
		r = fmt.Sprintf("(%s & %d)", r, bits)
		if right.isConst {
			r = fmt.Sprint(right.value & bits)
		}
		if left.isConst {
			l = kind + "(" + left.text + ")"
		}
	}
	text := fmt.Sprintf("(%s %s %s)", l, sign, r)
	if sign != how {
		second := right.signed()
		if sign == ">>" {
			second = r
		}
		text = fmt.Sprintf("%s(%s %s %s)", kind, left.signed(), sign, second)
	}
	w.push(made(text, wide, left, right))
}
