package journal

import (
	"fmt"
	"regexp"
)

// Schema names the form of a journal. It changes when a field changes its meaning or goes away; a field that is added, and means what
// was before where it is absent, does not change it.
const Schema = "quartet.state/v1"

// OtherVersionError says that a journal has a form that this program does not read.
type OtherVersionError struct {
	Schema  string // of the journal
	Program string // that wrote it last; empty where that is not known
}

// Error names both forms.
func (e *OtherVersionError) Error() string {
	by := ""
	if e.Program != "" {
		by = " and was written by quartet " + e.Program
	}
	return fmt.Sprintf("is of version %q%s, and this program reads %q", e.Schema, by, Schema)
}

var (
	schemaIn  = regexp.MustCompile(`"Schema":"([^"\\]*)"`)
	programIn = regexp.MustCompile(`"Program":"([^"\\]*)"`)
)

// CheckVersion is an *OtherVersionError where the record of Meta, which may lie behind a checksum, is of a form that this program does not read. It
// is found without reading anything else, of which the form may be another as well.
func CheckVersion(record []byte) error {
	found := schemaIn.FindSubmatch(record)
	if found == nil || string(found[1]) == Schema {
		return nil
	}
	e := &OtherVersionError{Schema: string(found[1])}
	if by := programIn.FindSubmatch(record); by != nil {
		e.Program = string(by[1])
	}
	return e
}
