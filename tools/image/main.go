// Command image puts static binaries of Quartet into an OCI image, without a daemon and without a base image. It writes an image
// layout and the same as a tar archive. The same binaries give the same bytes.
//
//	image -o DIR [-version V] [-revision COMMIT] linux/amd64=BINARY [linux/arm64=BINARY]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	var about About
	out := flags.String("o", "", "folder for the layout (oci/), the archive (quartet.tar) and the digest (digest)")
	flags.StringVar(&about.Version, "version", "0.0.0", "version of the program")
	flags.StringVar(&about.Revision, "revision", "", "commit that it was built of")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return errors.New("want -o DIR and binaries, such as linux/amd64=quartet")
	}
	var binaries []Binary
	for _, arg := range flags.Args() {
		platform, file, found := strings.Cut(arg, "=")
		if !found {
			return fmt.Errorf("%q: want PLATFORM=BINARY, such as linux/amd64=quartet", arg)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		binaries = append(binaries, Binary{platform, content})
	}
	index, err := Build(about, binaries)
	if err != nil {
		return err
	}
	digest, err := Write(index, about, *out)
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}
