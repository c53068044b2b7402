package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// abilityFiles are where it is found out what a policy, its config, a backend and its opener can do besides what each of them can.
var abilityFiles = []string{"core/abilities.go", "configs/abilities.go", "core/backend/abilities.go"}

// assertions lists the types that a file asserts values to, by type assertion or type switch, with where. Types of the repository are written as
// folder.Name, those of other modules are left out, and an interface without a name is "interface".
func (f *goFile) assertions() (list []assertion) {
	folders := map[string]string{} // by the name that an import goes by
	for _, spec := range f.ast.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if folder, ours := strings.CutPrefix(imported, module+"/"); ours {
			folders[name] = folder
		}
	}
	add := func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.Ident:
			list = append(list, assertion{f.folder + "." + e.Name, f.at(e)})
		case *ast.SelectorExpr:
			if of, is := e.X.(*ast.Ident); is && folders[of.Name] != "" {
				list = append(list, assertion{folders[of.Name] + "." + e.Sel.Name, f.at(e)})
			}
		case *ast.InterfaceType:
			list = append(list, assertion{"interface", f.at(e)})
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			add(n.Type) // nil in a type switch
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					add(e)
				}
			}
		}
		return true
	})
	return list
}

// An assertion is a type that some value may turn out to be, and where that is asked.
type assertion struct{ to, at string }

// What a policy or a backend can do is found out in one function each: nobody else asserts it to what these functions look for.
func TestAbilitiesAreFoundInOnePlace(t *testing.T) {
	abilities := map[string]bool{}
	files := goFiles(t)
	for _, f := range files {
		if !slices.Contains(abilityFiles, f.path) {
			continue
		}
		for _, a := range f.assertions() {
			abilities[a.to] = true
		}
	}
	delete(abilities, "core.Observer") // models and workloads may be observers as well
	if len(abilities) < 35 {
		t.Fatalf("found %d abilities only", len(abilities))
	}
	for _, f := range files {
		if slices.Contains(abilityFiles, f.path) {
			continue
		}
		for _, a := range f.assertions() {
			if abilities[a.to] {
				t.Errorf("%s: asserts a value to %s, which only %s may", a.at, a.to, strings.Join(abilityFiles, " and "))
			}
			if a.to == "interface" && (within(f.folder, "cmd/internal/operate") || within(f.folder, "core/control/...")) {
				t.Errorf("%s: asserts a value to an interface without a name", a.at)
			}
		}
	}
}

func TestAssertions(t *testing.T) {
	const code = `package x
import other "` + module + `/core"
import "io"
func f(v any) {
	_ = v.(other.Steady)
	_, _ = v.(io.Closer)
	_ = v.(local)
	_ = v.(interface{ Close() error })
	switch v.(type) { case other.Forker, local: }
}`
	f := &goFile{folder: "x", path: "x.go", set: token.NewFileSet()}
	var err error
	if f.ast, err = parser.ParseFile(f.set, "x.go", code, 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range f.assertions() {
		got = append(got, a.to)
	}
	if want := []string{"core.Steady", "x.local", "interface", "core.Forker", "x.local"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
