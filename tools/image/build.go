package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// About is what the labels of an image say.
type About struct {
	Version, Revision string // version and commit of the image
}

// Binary is a static program for a platform, such as linux/amd64.
type Binary struct {
	Platform string // operating system and architecture, such as linux/amd64
	Content  []byte // bytes of the program
}

// user is nobody's: it owns no file of the image, and needs none.
const user = "65532:65532"

const entrypoint = "/quartet"

// machines are the platforms that there are images for.
var machines = map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}

// Build makes an index with an image for each binary, in order of their platforms.
func Build(about About, binaries []Binary) (v1.ImageIndex, error) {
	binaries = slices.Clone(binaries)
	slices.SortFunc(binaries, func(a, b Binary) int { return strings.Compare(a.Platform, b.Platform) })
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, b := range binaries {
		if i > 0 && binaries[i-1].Platform == b.Platform {
			return nil, fmt.Errorf("two binaries for %s", b.Platform)
		}
		if err := b.check(); err != nil {
			return nil, err
		}
		platform, err := v1.ParsePlatform(b.Platform)
		if err != nil {
			return nil, err
		}
		image, err := b.image(about, platform)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return index, nil
}

// check refuses what would not start: there is neither a loader nor a library in the image.
func (b *Binary) check() error {
	machine, known := machines[b.Platform]
	if !known {
		return fmt.Errorf("no image for platform %q: there are linux/amd64 and linux/arm64", b.Platform)
	}
	file, err := elf.NewFile(bytes.NewReader(b.Content))
	if err != nil {
		return fmt.Errorf("the binary for %s: %w", b.Platform, err)
	}
	if file.Machine != machine {
		return fmt.Errorf("the binary for %s is for %v", b.Platform, file.Machine)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("the binary for %s is linked dynamically: build it with CGO_ENABLED=0", b.Platform)
		}
	}
	return nil
}

func (b *Binary) image(about About, platform *v1.Platform) (v1.Image, error) {
	content, err := layer(b.Content)
	if err != nil {
		return nil, err
	}
	compressed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: compressed, History: v1.History{CreatedBy: "tools/image", Created: v1.Time{Time: epoch}}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = platform.OS, platform.Architecture, v1.Time{Time: epoch}
	config.Config = v1.Config{
		User: user, Entrypoint: []string{entrypoint}, WorkingDir: "/", Labels: about.labels(),
		Env: []string{"PATH=/"}, ExposedPorts: map[string]struct{}{"9443/tcp": {}, "9476/tcp": {}},
	}
	return mutate.ConfigFile(image, config)
}

// epoch is when everything was made: the day must not change the digest.
var epoch = time.Unix(0, 0).UTC()

func (a About) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       "quartet",
		"org.opencontainers.image.description": "Composable scheduler for GPU training clusters",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/quartet-sched/quartet",
		"org.opencontainers.image.version":     a.Version,
	}
	if a.Revision != "" {
		labels["org.opencontainers.image.revision"] = a.Revision
	}
	return labels
}

// layer holds the program, which anyone may run and nobody may change, and a folder for temporary files.
func layer(program []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(entrypoint, "/"), Mode: 0o555, Size: int64(len(program))},
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
	} {
		h.ModTime, h.Format = epoch, tar.FormatPAX
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(program); err != nil {
				return nil, err
			}
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
