package scaffold_test

import (
	"archive/zip"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/scaffold"
)

var update = flag.Bool("update", false, "write require.txt and sums.txt anew")

// TestDependenciesAreThoseOfQuartet compares the modules that a new plugin requires, their versions and checksums with what the SDK
// imports and with the go.mod and go.sum of this repository.
func TestDependenciesAreThoseOfQuartet(t *testing.T) {
	imported := runGo(t, checkout, []string{"GOFLAGS=-mod=readonly", "GOPROXY=off"}, "list", "-deps",
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./core", "./core/coretest", "./plugins/sdk")
	modules := slices.DeleteFunc(strings.Split(imported, "\n"), func(line string) bool { return line == "" })
	slices.Sort(modules)
	modules = slices.Compact(modules)
	var sums []string
	for line := range strings.Lines(read(t, checkout+"/go.sum")) {
		for _, m := range modules {
			if strings.HasPrefix(line, m+" ") || strings.HasPrefix(line, m+"/go.mod ") {
				sums = append(sums, line)
			}
		}
	}
	for file, want := range map[string]string{"require.txt": strings.Join(modules, "\n") + "\n", "sums.txt": strings.Join(sums, "")} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(want, read(t, file)); diff != "" {
			t.Errorf("%s is out of date (-want +got):\n%s\nrun `go test ./plugins/scaffold -update`", file, diff)
		}
	}
	if want := "\ngo " + (scaffold.Plugin{}).GoVersion() + "\n"; !strings.Contains(read(t, checkout+"/go.mod"), want) {
		t.Errorf("the go.mod of Quartet does not hold %q", want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mostModules is how many modules a plugin may need, Quartet included.
const mostModules = 25

// unneeded are parts of the paths of modules that no plugin needs.
var unneeded = []string{"k8s.io", "spf13", "plot", "pdf", "prometheus", "nvml"}

// TestAPluginBuildsInAnEmptyFolder writes a plugin far from any checkout and builds it as its README says, with no module cache, from a
// file proxy that serves this repository as a published version. The binary passes the conformance suite.
func TestAPluginBuildsInAnEmptyFolder(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds a plugin with an empty module cache")
	}
	const version = "v0.1.0"
	dir, cache := filepath.Join(t.TempDir(), "new"), t.TempDir()
	p := plugin("allocation", "go")
	p.Version = scaffold.RequiredVersion(version)
	if _, err := scaffold.New(dir, p); err != nil {
		t.Fatal(err)
	}
	module := read(t, dir+"/go.mod")
	if !strings.Contains(module, "require "+p.Module()+" "+version+"\n") || strings.Contains(module, "replace") {
		t.Errorf("go.mod is\n%s", module)
	}

	downloaded := strings.TrimSpace(runGo(t, checkout, nil, "env", "GOMODCACHE"))
	env := []string{
		"GOPROXY=file://" + publish(t, version) + ",file://" + filepath.ToSlash(downloaded) + "/cache/download", "GOMODCACHE=" + cache,
		"GONOSUMDB=" + p.Module(), "GOFLAGS=-mod=readonly -modcacherw -trimpath", "GOWORK=off",
	}
	if !strings.Contains(read(t, dir+"/README.md"), "\ngo mod download "+p.Module()+" ") {
		t.Error("README.md does not say how to add the checksum of Quartet")
	}
	runGo(t, dir, env, "mod", "download", p.Module())
	runGo(t, dir, env, "vet", "./...")
	runGo(t, dir, env, "build")
	if diff := cmp.Diff(module, read(t, dir+"/go.mod")); diff != "" {
		t.Errorf("the build changed go.mod (-written +now):\n%s", diff)
	}
	checkModules(t, "go.mod", strings.Count(module, "\n\t")+1, module)
	fetched, err := filepath.Glob(cache + "/cache/download/*/*/@v/*.zip")
	deeper, _ := filepath.Glob(cache + "/cache/download/*/*/*/@v/*.zip")
	checkModules(t, "the module cache", len(fetched)+len(deeper), strings.ReplaceAll(strings.Join(append(fetched, deeper...), "\n"), cache, ""))
	if err != nil || len(fetched) == 0 {
		t.Errorf("no module was downloaded: %v", err)
	}
	conforms(t, filepath.Join(dir, p.Name))
}

// checkModules holds a list of modules to its limits.
func checkModules(t *testing.T, where string, count int, text string) {
	t.Helper()
	if count > mostModules {
		t.Errorf("%s holds %d modules, want at most %d:\n%s", where, count, mostModules, text)
	}
	for _, part := range unneeded {
		if strings.Contains(text, part) {
			t.Errorf("%s holds a module of %q:\n%s", where, part, text)
		}
	}
}

// conforms runs the conformance suite of an allocation plugin against its binary, as `quartet plugin test` does.
func conforms(t *testing.T, binary string) {
	t.Helper()
	pool, err := host.NewPool(t.Context(), host.Binary{Path: binary}, coretest.Instances)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	described, err := pool.Describe()
	if err != nil {
		t.Fatal(err)
	}
	if len(described.Components) != 1 {
		t.Fatalf("the plugin serves %d policies, want 1", len(described.Components))
	}
	factory := host.PoolFactory[core.Allocator](pool, described.Components[0])
	results, err := coretest.Check(factory, coretest.Effort{Worlds: 10, Seed: 1}, coretest.Elsewhere(), coretest.Reporting())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Fault != "" {
			t.Errorf("%s: %s", r.Check, r.Fault)
		}
	}
	if len(results) < 4 {
		t.Errorf("%d checks ran, want at least 4", len(results))
	}
}

// publish returns a folder that serves this repository as a module proxy does: one version, of its source files without tests.
func publish(t *testing.T, version string) string {
	t.Helper()
	proxy := t.TempDir()
	dir := filepath.Join(proxy, filepath.FromSlash((scaffold.Plugin{}).Module()), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list": version + "\n", version + ".mod": read(t, checkout+"/go.mod"), version + ".info": `{"Version":"` + version + `"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	if err := addModule(archive, (scaffold.Plugin{}).Module()+"@"+version); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return proxy
}

// addModule adds the files of this repository to an archive, below a prefix. Other modules inside it, tests and what no package
// embeds are left out.
func addModule(archive *zip.Writer, prefix string) error {
	return filepath.WalkDir(checkout, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(checkout, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if err == nil || strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"testdata", "docs", "node_modules", "runs"}, entry.Name()) {
				return fs.SkipDir
			}
		}
		if !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		to, err := archive.CreateHeader(&zip.FileHeader{Name: prefix + "/" + filepath.ToSlash(name), Method: zip.Store})
		if err != nil {
			return err
		}
		from, err := os.Open(path)
		if err != nil {
			return err
		}
		defer from.Close()
		_, err = io.Copy(to, from)
		return err
	})
}

func TestRequiredVersion(t *testing.T) {
	for program, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v0.4.0-rc.1": "v0.4.0-rc.1", "(devel)": scaffold.Unpublished, "unknown": scaffold.Unpublished, "": scaffold.Unpublished,
		"v0.0.0-20261128125012-900b9e5c0a3f": scaffold.Unpublished, "v1.2.3+dirty": scaffold.Unpublished,
	} {
		if got := scaffold.RequiredVersion(program); got != want {
			t.Errorf("RequiredVersion(%q) = %q, want %q", program, got, want)
		}
	}
}

// TestReplaceIsRelative writes plugins beside, inside and above a checkout: go.mod names it by a relative path, whichever way it was
// given, so that it holds no path of this machine.
func TestReplaceIsRelative(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	checkout := filepath.Join(root, "src", "quartet")
	if err := os.MkdirAll(checkout, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(checkout, "go.mod"), []byte("module github.com/quartet-sched/quartet\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(filepath.Join(root, "src"), link); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ dir, replace, want string }{
		"beside":                 {root + "/src/mine", checkout, "../quartet"},
		"elsewhere":              {root + "/a/b/mine", checkout, "../../../src/quartet"},
		"inside":                 {checkout + "/plugins/mine", checkout, "../.."},
		"above":                  {root + "/src", checkout, "./quartet"},
		"checkout behind a link": {root + "/src/linked", link + "/quartet", "../quartet"},
		"plugin behind a link":   {link + "/far", checkout, "../quartet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := plugin("placement", "go")
			p.Replace = tc.replace
			if _, err := scaffold.New(tc.dir, p); err != nil {
				t.Fatal(err)
			}
			module := read(t, tc.dir+"/go.mod")
			if !strings.Contains(module, "\nreplace "+p.Module()+" => "+tc.want+"\n") || strings.Contains(module, root) {
				t.Errorf("want a replacement by %q in\n%s", tc.want, module)
			}
		})
	}
	other := plugin("placement", "go")
	other.Replace = t.TempDir()
	if err := os.WriteFile(filepath.Join(other.Replace, "go.mod"), []byte("module example.com/other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.New(filepath.Join(root, "other"), other); err == nil || !strings.Contains(err.Error(), "is not a checkout of Quartet") {
		t.Errorf("error %v, want that it is not a checkout", err)
	}
}
