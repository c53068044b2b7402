package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const program = `package main

func main() { println("it runs") }
`

// built are static binaries for both platforms, by platform.
func built(t *testing.T) map[string]string {
	t.Helper()
	folder := t.TempDir()
	source := filepath.Join(folder, "main.go")
	if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for platform := range machines {
		system, architecture, _ := strings.Cut(platform, "/")
		to := filepath.Join(folder, architecture)
		c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, source)
		c.Dir, c.Env = folder, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		files[platform] = to
	}
	return files
}

// tree is what a folder holds, by path.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		relative, _ := filepath.Rel(folder, name)
		files[filepath.ToSlash(relative)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// entries are the files of an archive, by path.
func entries(t *testing.T, archive io.Reader) (files map[string]string, headers map[string]*tar.Header) {
	t.Helper()
	files, headers = map[string]string{}, map[string]*tar.Header{}
	r := tar.NewReader(archive)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
		if h.Typeflag == tar.TypeReg {
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[h.Name] = string(content)
		}
	}
}

func TestImage(t *testing.T) {
	files := built(t)
	folder := t.TempDir()
	amd, arm := "linux/amd64="+files["linux/amd64"], "linux/arm64="+files["linux/arm64"]
	once, twice := filepath.Join(folder, "once"), filepath.Join(folder, "twice")
	for _, args := range [][]string{
		{"-o", once, "-version", "1.2.3", "-revision", "abc", amd, arm},
		{"-o", twice, "-version", "0.0.1", amd}, // what it leaves is replaced
		{"-o", twice, "-version", "1.2.3", "-revision", "abc", arm, amd},
	} {
		if err := run(args); err != nil {
			t.Fatal(err)
		}
	}
	first, second := tree(t, once), tree(t, twice)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Fatal("two runs write other bytes")
	}

	// The archive is the layout.
	inside, headers := entries(t, strings.NewReader(first[archiveFile]))
	for name, h := range headers {
		if !h.ModTime.Equal(epoch) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s tells who made it: %+v", name, h)
		}
	}
	if diff := cmp.Diff(tree(t, filepath.Join(once, layoutFolder)), inside); diff != "" {
		t.Error("the archive is not the layout")
	}

	at, err := layout.FromPath(filepath.Join(once, layoutFolder))
	if err != nil {
		t.Fatal(err)
	}
	outer, err := at.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil {
		t.Error(err)
	}
	list, err := outer.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Manifests) != 1 || list.Manifests[0].Digest.String()+"\n" != first[digestFile] || list.Manifests[0].Annotations["io.containerd.image.name"] != "quartet:1.2.3" {
		t.Fatalf("the layout holds %+v, the digest is %s", list.Manifests, first[digestFile])
	}
	index, err := outer.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range images.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, m.Platform, files[m.Platform.String()])
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func checkImage(t *testing.T, image v1.Image, platform *v1.Platform, binary string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", Entrypoint: []string{"/quartet"}, WorkingDir: "/", Env: []string{"PATH=/"},
		ExposedPorts: map[string]struct{}{"9443/tcp": {}, "9476/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "quartet", "org.opencontainers.image.description": "Composable scheduler for GPU training clusters",
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://github.com/quartet-sched/quartet",
			"org.opencontainers.image.version": "1.2.3", "org.opencontainers.image.revision": "abc",
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture || !config.Created.Equal(epoch) {
		t.Errorf("made for %s/%s at %v", config.OS, config.Architecture, config.Created)
	}
	flat := mutate.Extract(image)
	defer flat.Close()
	content, headers := entries(t, flat)
	if h := headers["quartet"]; len(headers) != 2 || h == nil || h.Mode != 0o555 || h.Uid != 0 {
		t.Fatalf("files %v", headers)
	}
	original, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if content["quartet"] != string(original) {
		t.Error("the program is another one")
	}
	if platform.Architecture != runtime.GOARCH || platform.OS != runtime.GOOS {
		return
	}
	unpacked := filepath.Join(t.TempDir(), "quartet")
	if err := os.WriteFile(unpacked, []byte(content["quartet"]), 0o555); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), unpacked).CombinedOutput(); err != nil || string(out) != "it runs\n" {
		t.Errorf("%q (%v)", out, err)
	}
}

// dynamic turns a static binary into one that asks for a loader.
func dynamic(t *testing.T, static []byte) []byte {
	t.Helper()
	changed := bytes.Clone(static)
	table := binary.LittleEndian.Uint64(changed[0x20:]) // of program headers, whose first word is their type
	binary.LittleEndian.PutUint32(changed[table:], uint32(elf.PT_INTERP))
	return changed
}

func TestWhatIsNoImage(t *testing.T) {
	files := built(t)
	amd, arm := "linux/amd64="+files["linux/amd64"], "linux/arm64="+files["linux/arm64"]
	content, err := os.ReadFile(files["linux/amd64"])
	if err != nil {
		t.Fatal(err)
	}
	linked, script := filepath.Join(t.TempDir(), "linked"), filepath.Join(t.TempDir(), "script")
	if err := errors.Join(os.WriteFile(linked, dynamic(t, content), 0o755), os.WriteFile(script, []byte("#!/bin/sh\nexec true # and long enough to be one\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":             {nil, "want -o DIR"},
		"no binary":           {[]string{"-o", t.TempDir()}, "want -o DIR"},
		"no platform":         {[]string{"-o", t.TempDir(), "quartet"}, "want PLATFORM=BINARY"},
		"another platform":    {[]string{"-o", t.TempDir(), "windows/amd64=" + files["linux/amd64"]}, `no image for platform "windows/amd64"`},
		"a platform twice":    {[]string{"-o", t.TempDir(), amd, arm, amd}, "two binaries for linux/amd64"},
		"no file":             {[]string{"-o", t.TempDir(), "linux/amd64=" + t.TempDir() + "/none"}, "no such file"},
		"the other's machine": {[]string{"-o", t.TempDir(), "linux/arm64=" + files["linux/amd64"]}, "the binary for linux/arm64 is for EM_X86_64"},
		"linked dynamically":  {[]string{"-o", t.TempDir(), "linux/amd64=" + linked}, "build it with CGO_ENABLED=0"},
		"a script":            {[]string{"-o", t.TempDir(), "linux/amd64=" + script}, "bad magic number"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if len(tc.args) > 1 && tc.args[0] == "-o" {
				if left := tree(t, tc.args[1]); len(left) > 0 {
					t.Errorf("it leaves %d files", len(left))
				}
			}
		})
	}
}
