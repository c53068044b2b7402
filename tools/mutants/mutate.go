package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is a change of the code in one place.
type mutant struct {
	id       int
	file     string // base name
	at       token.Position
	from, to string
	line     string // the changed line without its indentation
	function string // that holds it, with the type of its receiver; empty outside of functions
	ordinal  int    // among the changes that are equal in all of the above but the position, from 1; 0 if there is no other
}

func (m *mutant) String() string {
	return fmt.Sprintf("%d:%d: %s", m.at.Line, m.at.Column, m.key())
}

// key names one change of a package in the list of known survivors: by its function and the text of its line, for numbers of
// lines do not last, and by its ordinal where that names several.
func (m *mutant) key() string {
	if m.ordinal == 0 {
		return m.name()
	}
	return m.name() + " #" + strconv.Itoa(m.ordinal)
}

func (m *mutant) name() string {
	return m.file + ": " + m.function + ": " + m.line + ": " + m.from + " -> " + m.to
}

// number gives an ordinal to each of the changes that share a name. They come in the order of the syntax tree.
func number(mutants []*mutant) {
	count := map[string]int{}
	for _, m := range mutants {
		count[m.name()]++
		m.ordinal = count[m.name()]
	}
	for _, m := range mutants {
		if count[m.name()] == 1 {
			m.ordinal = 0
		}
	}
}

// swaps are the changes of a binary operator.
var swaps = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.AND: {token.OR}, token.OR: {token.AND}, token.AND_NOT: {token.AND}, token.SHL: {token.SHR}, token.SHR: {token.SHL},
}

// edit puts one piece of text in place of another. inner is the piece with the edits inside it.
type edit struct {
	from, to int // offsets
	put      func(inner string) string
}

// mutator collects the changes of one file.
type mutator struct {
	p       *pack
	s       *source
	mutants *[]*mutant
	edits   []edit
	inside  string // function
}

// mutate returns a file's text with every change in it, each behind a question whether it is the chosen one.
func (p *pack) mutate(s *source, mutants *[]*mutant) string {
	m := &mutator{p: p, s: s, mutants: mutants}
	for _, d := range s.ast.Decls {
		m.inside = functionName(d)
		ast.Inspect(d, m.visit)
	}
	slices.SortStableFunc(m.edits, func(a, b edit) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	return m.render(0, len(s.text), m.edits)
}

// render applies edits, sorted and nested, to a piece of the text.
func (m *mutator) render(from, to int, edits []edit) string {
	var b strings.Builder
	for at := from; ; {
		if len(edits) == 0 {
			b.Write(m.s.text[at:to])
			return b.String()
		}
		e := edits[0]
		n := 1
		for n < len(edits) && edits[n].from < e.to {
			n++
		}
		b.Write(m.s.text[at:e.from])
		b.WriteString(e.put(m.render(e.from, e.to, edits[1:n])))
		at, edits = e.to, edits[n:]
	}
}

func (m *mutator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST && n.Tok != token.TYPE
	case *ast.FuncDecl:
		return n.Name.Name != "String" && n.Name.Name != "Error" // wording is not what these tests are for
	case *ast.FieldList: // of a signature: the bounds of a type parameter look like an expression
		return false
	case *ast.BinaryExpr:
		m.operator(n)
	case *ast.IfStmt:
		m.negate(n.Cond)
	case *ast.BlockStmt:
		m.statements(n.List)
	case *ast.CaseClause:
		m.statements(n.Body)
	}
	return true
}

func (m *mutator) offset(p token.Pos) int { return m.p.fset.Position(p).Offset }

func (m *mutator) source(n ast.Node) string {
	return string(m.s.text[m.offset(n.Pos()):m.offset(n.End())])
}

// add notes a change and returns its number.
func (m *mutator) add(at token.Pos, from, to string) int {
	position := m.p.fset.Position(at)
	line, _, _ := strings.Cut(string(m.s.text[position.Offset-position.Column+1:]), "\n")
	*m.mutants = append(*m.mutants, &mutant{
		id: len(*m.mutants) + 1, file: filepath.Base(m.s.path), at: position, from: from, to: to, line: strings.TrimSpace(line), function: m.inside,
	})
	return len(*m.mutants)
}

// functionName is the name of a function or of a method, the latter with its type; empty for other declarations.
func functionName(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// operator exchanges the operator of an expression that is computed when the program runs.
func (m *mutator) operator(e *ast.BinaryExpr) {
	value, ok := m.p.info.Types[e]
	if !ok || value.Value != nil {
		return
	}
	result := "bool"
	if basic, untyped := value.Type.(*types.Basic); !untyped || basic.Kind() != types.UntypedBool {
		if result = m.typeName(value.Type); result == "" {
			return
		}
	}
	operand := m.p.info.Types[e.X].Type
	numeric := isBasic(operand, types.IsNumeric)
	var cases strings.Builder
	for _, to := range swaps[e.Op] {
		ordered := to != token.EQL && to != token.NEQ && to != token.LAND && to != token.LOR
		if ordered && !numeric && !isBasic(operand, types.IsOrdered) || to == token.SUB && !numeric {
			continue
		}
		if basic, is := operand.Underlying().(*types.Basic); is && basic.Info()&types.IsFloat != 0 && (to == token.REM || to == token.SHL) {
			continue
		}
		if right := m.p.info.Types[e.Y]; to == token.QUO && right.Value != nil && right.Value.String() == "0" {
			continue // does not compile
		}
		id := m.add(e.OpPos, e.Op.String(), to.String())
		fmt.Fprintf(&cases, "if mutantChosen(%d) { return (%s) %s (%s) }; ", id, m.source(e.X), to, m.source(e.Y))
	}
	if cases.Len() == 0 {
		return
	}
	m.edits = append(m.edits, edit{m.offset(e.Pos()), m.offset(e.End()), func(inner string) string {
		return "func() " + result + " { " + cases.String() + "return " + inner + " }()"
	}})
}

// negate exchanges a condition that is no comparison by its opposite.
func (m *mutator) negate(e ast.Expr) {
	if _, compares := e.(*ast.BinaryExpr); compares || m.p.info.Types[e].Value != nil {
		return
	}
	id := m.add(e.Pos(), "if "+brief(m.source(e)), "if not")
	m.edits = append(m.edits, edit{m.offset(e.Pos()), m.offset(e.End()), func(inner string) string {
		return "(mutantChosen(" + strconv.Itoa(id) + ") != (" + inner + "))"
	}})
}

// statements leaves out single statements.
func (m *mutator) statements(list []ast.Stmt) {
	for _, s := range list {
		if !removable(s) {
			continue
		}
		id := m.add(s.Pos(), brief(m.source(s)), "nothing")
		m.edits = append(m.edits, edit{m.offset(s.Pos()), m.offset(s.End()), func(inner string) string {
			return "if !mutantChosen(" + strconv.Itoa(id) + ") { " + inner + " }"
		}})
	}
}

// removable reports whether the program compiles without the statement, and would do something else.
func removable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		name, _ := call.Fun.(*ast.Ident)
		return name == nil || name.Name != "panic"
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return false
		}
		return !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool {
			name, is := e.(*ast.Ident)
			return is && name.Name == "_"
		})
	case *ast.IncDecStmt:
		return true
	case *ast.BranchStmt:
		return (s.Tok == token.BREAK || s.Tok == token.CONTINUE) && s.Label == nil
	}
	return false
}

// typeName is a type as the file can write it, or "".
func (m *mutator) typeName(t types.Type) string {
	writable := true
	name := types.TypeString(t, func(p *types.Package) string {
		if p.Path() == m.p.path {
			return ""
		}
		for _, i := range m.s.ast.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); path != p.Path() {
				continue
			}
			if i.Name != nil {
				return i.Name.Name
			}
			return p.Name()
		}
		writable = false
		return ""
	})
	if !writable || strings.HasPrefix(name, "untyped") {
		return ""
	}
	return name
}

func isBasic(t types.Type, info types.BasicInfo) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&info != 0
}

// brief is a piece of code on one short line.
func brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 60 {
		s = s[:57] + "..."
	}
	return s
}
