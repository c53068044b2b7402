package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/quartet-sched/quartet"
	root   = "../.."
)

// A room is a folder of the repository, with what its code may import from the others.
type room struct {
	folder string
	// mayImport lists folders; "x/..." is x and all below it. Everything in the room's own folder is allowed.
	mayImport []string
}

// rooms is in order of precedence: a package belongs to the first room that holds it.
var rooms = []room{
	// The worlds and models that a round meets.
	{"core/coretest", []string{"core", "core/mig"}},
	{"core/agent", []string{"internal/unixsocket"}},
	{"core/control", []string{"core", "core/backend", "core/workload", "internal/unixsocket"}},
	{"core/backend/local/keeper", []string{"core/agent"}},
	{"core/backend", []string{"core", "core/agent", "core/grid", "core/mig", "core/workload", "core/goodput"}},
	{"core/sim", []string{"core", "core/backend", "core/grid", "core/interference", "core/mig", "core/restart", "core/workload", "core/goodput"}},
	{"core/interference", []string{"core"}},
	{"core/grid", nil},
	{"core/mig", nil},
	{"core/restart", nil},
	{"core/workload", []string{"core", "core/goodput", "core/mig", "internal/interrupt", "internal/yamlpos"}},
	{"core/metrics", []string{"core"}},
	{"core/timeline", []string{"core", "core/metrics"}},
	{"core/goodput", []string{"core", "core/optim", "internal/memo", "internal/yamlpos"}},
	{"core/optim", nil},
	{"core/stats", nil},
	{"core/tuning", []string{"core", "core/metrics", "core/search", "core/workload"}},
	{"core/twin", []string{"core", "core/backend", "core/goodput", "core/sim", "core/stats", "core/workload"}},
	{"core/synthesizer", []string{"core", "core/metrics", "core/stats", "core/twin", "core/workload"}},
	{"core/search", []string{"core"}},
	{"core", []string{"core/grid", "core/mig", "internal/nearest", "internal/oneline", "internal/settings"}}, // the language and the round
	// What several policies share.
	{"policykit/policytest", []string{"core", "core/coretest", "core/coretest/drawn"}},
	{"policykit/promise", []string{"core", "policykit/queue"}},
	{"policykit/synergy", []string{"core", "core/optim"}},
	{"policykit", []string{"core"}},
	// The policies.
	{"admission", []string{"core", "policykit/...", "core/goodput", "core/optim/..."}},
	{"allocation", []string{"core", "policykit/...", "core/goodput", "core/interference", "core/restart", "core/optim/..."}},
	{"placement/score/inflation", []string{"core", "core/mig", "core/workload", "placement/score", "internal/gorand"}},
	{"placement", []string{"core", "policykit/...", "core/goodput", "core/mig", "core/optim/..."}},
	{"elasticity", []string{"core", "policykit/...", "core/goodput", "core/optim/...", "internal/memo", "internal/yamlpos"}},
	{"plugins", []string{"core/...", "policykit/...", "internal/yamlpos"}},
	{"configs", []string{"core/...", "policykit/...", "internal/yamlpos"}},
	// A run from open to results, and the door to it.
	{"internal/engine", []string{
		"configs", "core", "core/backend", "core/backend/journal", "core/metrics", "core/sim", "core/stats", "core/synthesizer", "core/timeline",
		"core/twin", "core/workload", "admission",
	}},
	{".", []string{
		"internal/engine", "configs", "core", "core/backend", "core/sim", "core/tuning", "core/workload",
		"admission/...", "allocation/...", "placement/...", "elasticity/...",
	}},
	// What compares and shows.
	{"lab/report", []string{"core/metrics", "core/stats", "lab/report/vector"}},
	{"lab/export", []string{"core", "core/metrics", "core/timeline"}},
	{"lab/study", []string{".", "configs", "core", "core/metrics", "core/stats", "core/workload", "internal/yamlpos"}},
	{"lab/advise", []string{".", "configs", "core", "core/metrics", "core/stats", "core/workload", "lab/study"}},
	{"lab/compare", []string{".", "configs", "core", "core/metrics", "core/stats", "lab/study"}},
	{"cmd", []string{"..."}},
	{"tools/kube", []string{"internal/kubecluster", "internal/kubetrainee"}},
	{"tools/kubereality", []string{".", "configs", "core/...", "internal/kubecluster", "internal/kubetrainee"}},
	{"tools/kubespeed", []string{"core/...", "internal/kubecluster", "admission", "allocation", "elasticity", "placement"}},
	{"tools", []string{".", "configs", "core/...", "policykit/...", "lab/..."}},
	{"examples/embed", []string{".", "core/..."}},
	{"examples", []string{"core", "core/agent", "core/goodput"}},
	{"internal/yamlpos", []string{"core"}},
	{"internal/doortest", []string{".", "core", "core/workload"}},
	{"internal/kubetrainee", []string{"core", "core/agent", "core/goodput", "core/workload", "internal/kubecluster"}},
	{"internal", nil},
}

// onlyIn names modules that stay where they are needed, by prefix of the import path.
var onlyIn = []struct{ prefix, folder string }{
	{"github.com/spf13/cobra", "cmd"},
	{"github.com/olekukonko/tablewriter", "cmd"},
	{"codeberg.org/go-pdf/fpdf", "lab/report/vector"},
	{"github.com/spf13/viper", "configs"},
	{"go.etcd.io/bbolt", "core/backend/local"},
	{"github.com/NVIDIA/go-nvml", "core/backend/device"},
	{"github.com/hashicorp/go-plugin", "plugins"},
	{"github.com/prometheus/", "core/metrics/exposition"},
	{"pgregory.net/rapid", "core/coretest/drawn"},
	{"github.com/google/go-cmp", "core/backend/backendtest"},
	{"go.uber.org/goleak", "core/backend/backendtest"},
}

// policytest holds what the tests of policies share: only tests import it, and it imports what tests do.
const policytest = "policykit/policytest"

// importFault says why a package, given by its folder, must not import a path; empty when it may.
func importFault(folder, imported string) string {
	for _, rule := range onlyIn {
		if strings.HasPrefix(imported, rule.prefix) && !within(folder, rule.folder+"/...") && folder != policytest {
			return fmt.Sprintf("only %s imports %s", rule.folder, rule.prefix)
		}
	}
	if imported == module {
		imported += "/."
	}
	target, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return ""
	}
	if within(target, "core/coretest/...") && !within(folder, "cmd/...") && !within(folder, "core/coretest/...") && folder != policytest { // of which `plugin test` is one
		return "core/coretest is for tests"
	}
	if target == policytest {
		return policytest + " is for tests"
	}
	for _, r := range rooms {
		if !within(folder, r.folder+"/...") {
			continue
		}
		allowed := append([]string{r.folder + "/..."}, r.mayImport...)
		if r.folder == "core" { // its sub-packages are rooms of their own
			allowed = append([]string{"core"}, r.mayImport...)
		}
		allowed = append(allowed, "internal/inputfile") // whoever reads files opens them there
		if !slices.ContainsFunc(allowed, func(pattern string) bool { return within(target, pattern) }) {
			return fmt.Sprintf("%s imports %s, may import %s", folder, target, strings.Join(allowed, ", "))
		}
		return ""
	}
	return fmt.Sprintf("%s is in none of the rooms", folder)
}

// within reports whether a folder matches a pattern as the go command writes it.
func within(folder, pattern string) bool {
	prefix, deep := strings.CutSuffix(pattern, "...")
	if !deep {
		return folder == pattern
	}
	return prefix == "" || folder+"/" == prefix || strings.HasPrefix(folder, prefix)
}

// decides reports whether the code in a folder takes part in decisions, which must repeat to the byte.
func decides(folder string) bool {
	for _, r := range [...]string{".", "core/...", "internal/engine/...", "lab/...", "policykit/...", "admission/...", "allocation/...", "placement/...", "elasticity/..."} {
		if within(folder, r) {
			return !within(folder, "core/coretest/...") && !within(folder, "core/backend/...") && !within(folder, "core/control/...")
		}
	}
	return false
}

// seeded are the names of math/rand/v2 that touch no shared stream.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

// codeFaults lists what a file of a deciding package must not contain.
func codeFaults(set *token.FileSet, file *ast.File) []string {
	names := make(map[string]string) // import path by the name it goes by in the file
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(strings.TrimSuffix(imported, "/v2"))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = imported
	}
	var faults []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				faults = append(faults, fmt.Sprintf("%s: init function", set.Position(n.Pos())))
			}
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			imported, name := names[of.Name], n.Sel.Name
			if imported == "time" && slices.Contains([]string{"Now", "Since", "Until"}, name) ||
				imported == "math/rand/v2" && !slices.Contains(seeded, name) || imported == "math/rand" {
				faults = append(faults, fmt.Sprintf("%s: %s.%s", set.Position(n.Pos()), of.Name, name))
			}
		}
		return true
	})
	return faults
}

func TestTreeKeepsTheRules(t *testing.T) {
	set := token.NewFileSet()
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() {
			if base == "testdata" || name != root && strings.HasPrefix(base, ".") {
				return filepath.SkipDir
			}
			return nil
		} else if !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		relative, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(relative)
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if fault := importFault(folder, imported); fault != "" {
				t.Errorf("%s: %s", set.Position(spec.Pos()), fault)
			}
		}
		if decides(folder) {
			for _, fault := range codeFaults(set, file) {
				t.Error(fault)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Fatal("found no Go files")
	}
}

// engines are what backends of real machines and processes of plugins are reached by: nobody links them who embeds Quartet.
var engines = []string{
	"k8s.io/", "go.etcd.io/bbolt", "google.golang.org/grpc", "github.com/hashicorp/go-plugin", "github.com/NVIDIA/", "github.com/prometheus/",
	module + "/core/backend/local", module + "/core/control", module + "/plugins", module + "/cmd",
}

func TestTheDoorLinksNoEngine(t *testing.T) {
	text, err := exec.Command("go", "list", "-deps", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(text))
	if !slices.Contains(packages, module+"/core/sim") {
		t.Errorf("go list does not tell of the simulator: %q", packages)
	}
	for _, p := range packages {
		for _, engine := range engines {
			if strings.HasPrefix(p, engine) {
				t.Errorf("package quartet links %s", p)
			}
		}
	}
}

// The root package is the door and nothing else: tests of the engine and of publications have rooms of their own.
func TestTheDoorIsSmall(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	sources := 0
	for _, path := range found {
		switch name := filepath.Base(path); {
		case !strings.HasSuffix(name, "_test.go"):
			sources++
		case name != "example_test.go":
			t.Errorf("%s: tests of the engine are in internal/engine, those of publications in test/acceptance", name)
		}
	}
	if sources > 14 {
		t.Errorf("%d source files, want at most 14", sources)
	}
}

// A plugin, what simulates and the program without Kubernetes need no cluster, and link nothing of its clients.
func TestPluginsLinkNoClient(t *testing.T) {
	for _, what := range []string{"/plugins/sdk", "/plugins/examples/...", "/core/sim", "/cmd/quartet"} {
		text, err := exec.Command("go", "list", "-deps", module+what).Output()
		if err != nil || len(text) == 0 {
			t.Fatal(what, err)
		}
		for p := range strings.FieldsSeq(string(text)) {
			if strings.HasPrefix(p, "k8s.io/") {
				t.Errorf("%s links %s", what, p)
			}
		}
	}
}

// The programs and plugins link the suites, and no library of tests.
func TestProgramsLinkNoLibraryOfTests(t *testing.T) {
	for _, what := range []string{"/cmd/quartet", "/cmd/quartet-kubernetes", "/plugins/examples/..."} {
		text, err := exec.Command("go", "list", "-deps", module+what).Output()
		if err != nil || len(text) == 0 {
			t.Fatal(what, err)
		}
		for p := range strings.FieldsSeq(string(text)) {
			for _, library := range []string{"pgregory.net/rapid", "github.com/google/go-cmp", "go.uber.org/goleak", "github.com/rogpeppe/go-internal"} {
				if strings.HasPrefix(p, library) {
					t.Errorf("%s links %s", what, p)
				}
			}
		}
	}
}

func TestImportFault(t *testing.T) {
	cases := map[string]struct {
		folder, imported string
		wantFault        bool
	}{
		"a stage imports core":                {"allocation", module + "/core", false},
		"a sub-package imports its stage":     {"allocation/pollux", module + "/allocation", false},
		"a stage imports another":             {"allocation", module + "/placement", true},
		"a stage imports the simulator":       {"placement", module + "/core/sim", true},
		"a stage imports the configs":         {"admission", module + "/configs", true},
		"core imports a part of itself":       {"core", module + "/core/sim", true},
		"core imports a stage":                {"core", module + "/elasticity", true},
		"the simulator imports core":          {"core/sim", module + "/core", false},
		"the simulator imports a stage":       {"core/sim", module + "/allocation", true},
		"metrics import the simulator":        {"core/metrics", module + "/core/sim", true},
		"configs import a stage":              {"configs", module + "/admission", true},
		"a policy imports the suites":         {"allocation", module + "/core/coretest", true},
		"the suites import rapid":             {"core/coretest", "pgregory.net/rapid", true},
		"worlds are drawn by rapid":           {"core/coretest/drawn", "pgregory.net/rapid", false},
		"the command runs the suites":         {"cmd/quartet", module + "/core/coretest", false},
		"tests of policies share the suites":  {"policykit/policytest", module + "/core/coretest", false},
		"a policy imports its tests' helpers": {"allocation", module + "/policykit/policytest", true},
		"a plugin imports core":               {"plugins/sdk", module + "/core", false},
		"a plugin imports configs":            {"plugins/host", module + "/configs", true},
		"an experiment draws as Go did":       {"placement/score/inflation", module + "/internal/gorand", false},
		"a placer draws as Go did":            {"placement/score", module + "/internal/gorand", true},
		"a keeper imports its scheduler":      {"core/backend/local/keeper", module + "/core/backend/local", true},
		"a scheduler imports its keeper":      {"core/backend/local", module + "/core/backend/local/keeper", false},
		"the door imports a stage":            {".", module + "/allocation/pollux", false},
		"the door imports real processes":     {".", module + "/core/backend/local", true},
		"the door imports the command line":   {".", module + "/cmd/quartet", true},
		"the door imports plugin hosts":       {".", module + "/plugins/host", true},
		"the command imports the door":        {"cmd/quartet", module, false},
		"a stage imports the door":            {"allocation", module, true},
		"cmd imports a stage":                 {"cmd/quartet", module + "/allocation", false},
		"core imports cobra":                  {"core", "github.com/spf13/cobra", true},
		"a room that the list does not know":  {"extras", module + "/core", true},
		"anyone imports the library":          {"extras", "strings", false},
		"acceptance goes by the door":         {"internal/doortest", module, false},
		"acceptance reaches past the door":    {"internal/doortest", module + "/internal/engine", true},
		"a study reaches past the door":       {"lab/study", module + "/internal/engine", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := importFault(tc.folder, tc.imported); (got != "") != tc.wantFault {
				t.Errorf("fault %q, want one: %v", got, tc.wantFault)
			}
		})
	}
}

func TestCodeFaults(t *testing.T) {
	cases := map[string]struct {
		code string
		want int
	}{
		"a seeded stream":     {`import "math/rand/v2"; var r = rand.New(rand.NewPCG(1, 2))`, 0},
		"the shared stream":   {`import "math/rand/v2"; var n = rand.IntN(3)`, 1},
		"the older package":   {`import dice "math/rand"; var n = dice.New(nil)`, 1},
		"the clock":           {`import "time"; var now, then = time.Now(), time.Since(time.Time{})`, 2},
		"a duration":          {`import "time"; var d = time.Second`, 0},
		"init":                {`func init() {}`, 1},
		"a method named init": {`type t struct{}; func (t) init() {}`, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, "x.go", "package x; "+tc.code, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := codeFaults(set, file); len(got) != tc.want {
				t.Errorf("faults %q, want %d", got, tc.want)
			}
		})
	}
}
