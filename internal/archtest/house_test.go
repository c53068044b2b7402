package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Limits of a function. Its complexity is 1 and 1 for each condition, case, loop, && and ||.
const (
	longestFunction    = 80 // lines, but for lists
	highestComplexity  = 30
	usualComplexity    = 15
	mostComplex        = 90 // functions above usualComplexity in the whole tree
	longestPackage     = 9000
	mostFilesAtTheDoor = 14
	mostNamesOfCore    = 350
)

// lists are functions that only list what there is.
var lists = map[string]bool{"components.go: Builtins": true}

// A goFile is a Go file that people write and that is no test.
type goFile struct {
	folder, path string // with slashes, from the root of the repository
	set          *token.FileSet
	ast          *ast.File
}

// lines counts the lines from a node's first to its last.
func (f *goFile) lines(n ast.Node) int {
	return f.set.Position(n.End()).Line - f.set.Position(n.Pos()).Line + 1
}

// at is where a node stands.
func (f *goFile) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.set.Position(n.Pos()).Line)
}

// goFiles reads all Go files of the repository but tests and generated ones.
func goFiles(t *testing.T) (files []*goFile) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch base := filepath.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && (base == "testdata" || base == "node_modules" || name != root && strings.HasPrefix(base, ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go"):
			return nil
		}
		f := &goFile{set: token.NewFileSet()}
		if f.ast, err = parser.ParseFile(f.set, name, nil, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		if ast.IsGenerated(f.ast) {
			return nil
		}
		if f.path, err = filepath.Rel(root, name); err != nil {
			return err
		}
		f.path = filepath.ToSlash(f.path)
		f.folder = filepath.ToSlash(filepath.Dir(f.path))
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("found no Go files")
	}
	return files
}

// complexity is how many ways there are through a function, counted as cyclomatic complexity.
func complexity(function ast.Node) int {
	n := 1
	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func TestFunctionsAreShort(t *testing.T) {
	var complex []string
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			function, is := d.(*ast.FuncDecl)
			if !is || lists[f.path+": "+function.Name.Name] {
				continue
			}
			if n := f.lines(function); n > longestFunction {
				t.Errorf("%s: %s has %d lines, more than %d", f.at(function), function.Name.Name, n, longestFunction)
			}
			n := complexity(function)
			if n > highestComplexity {
				t.Errorf("%s: %s has a complexity of %d, above %d", f.at(function), function.Name.Name, n, highestComplexity)
			}
			if n > usualComplexity {
				complex = append(complex, fmt.Sprintf("%d %s %s", n, f.at(function), function.Name.Name))
			}
		}
	}
	if len(complex) > mostComplex {
		t.Errorf("%d functions have a complexity above %d, more than %d:\n%s", len(complex), usualComplexity, mostComplex, strings.Join(complex, "\n"))
	}
}

func TestRoomsAreSmall(t *testing.T) {
	lines, files, names := map[string]int{}, map[string]int{}, map[string]int{}
	for _, f := range goFiles(t) {
		lines[f.folder] += f.set.Position(f.ast.FileEnd).Line
		files[f.folder]++
		for name := range f.comments() {
			if !strings.Contains(name, ".") {
				names[f.folder]++
			}
		}
	}
	for folder, n := range lines {
		if n > longestPackage {
			t.Errorf("%s has %d lines, more than %d", folder, n, longestPackage)
		}
	}
	if n := files["."]; n > mostFilesAtTheDoor {
		t.Errorf("the root package has %d files, more than %d", n, mostFilesAtTheDoor)
	}
	if n := names["core"]; n > mostNamesOfCore {
		t.Errorf("core exports %d names, more than %d", n, mostNamesOfCore)
	}
}

// receiverOf is the name of the type of a method.
func receiverOf(method *ast.FuncDecl) string {
	for receiver := method.Recv.List[0].Type; ; {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// comments says of every exported name how it is explained: types, functions, methods, constants and variables by a comment above or behind them, or
// above the block that they stand in; fields and methods of interfaces by one of their own.
func (f *goFile) comments() map[string]explained {
	found := map[string]explained{}
	add := func(name *ast.Ident, of string, at ast.Node, groups ...*ast.CommentGroup) {
		if name.IsExported() {
			found[of+name.Name] = explained{f.at(at), firstText(groups)}
		}
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name, "", d, d.Doc)
			} else if receiver := receiverOf(d); ast.IsExported(receiver) {
				add(d.Name, receiver+".", d, d.Doc)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name, "", s, s.Doc, s.Comment, d.Doc)
					}
				case *ast.TypeSpec:
					add(s.Name, "", s, s.Doc, s.Comment, d.Doc)
					for _, field := range membersOf(s) {
						for _, name := range field.Names {
							add(name, s.Name.Name+".", field, field.Doc, field.Comment)
						}
					}
				}
			}
		}
	}
	return found
}

// firstText is the first comment that says something; empty for none.
func firstText(groups []*ast.CommentGroup) string {
	for _, g := range groups {
		if s := strings.TrimSpace(g.Text()); s != "" {
			return s
		}
	}
	return ""
}

// An explained name has a place and what is said of it.
type explained struct{ at, comment string }

// membersOf lists the fields of an exported struct and the methods of an exported interface.
func membersOf(s *ast.TypeSpec) []*ast.Field {
	if !s.Name.IsExported() {
		return nil
	}
	switch t := s.Type.(type) {
	case *ast.StructType:
		return t.Fields.List
	case *ast.InterfaceType:
		return t.Methods.List
	}
	return nil
}

// leans matches comments that rest on another one.
var leans = regexp.MustCompile(`(?i)^(see (above|below)|the same|as above|ditto|likewise)\b`)

func TestExportedNamesAreExplained(t *testing.T) {
	for _, f := range goFiles(t) {
		for name, e := range f.comments() {
			if e.comment == "" {
				t.Errorf("%s: %s has no comment", e.at, name)
			}
			if leans.MatchString(e.comment) {
				t.Errorf("%s: the comment of %s, %q, does not stand alone", e.at, name, e.comment)
			}
		}
	}
}
