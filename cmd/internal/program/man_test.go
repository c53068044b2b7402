package program

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestManual(t *testing.T) {
	root := &cobra.Command{Use: "quartet", Version: "v1.2.3"}
	c := &cobra.Command{
		Use: "fit FILE", Short: "Fit a <file>", Run: func(*cobra.Command, []string) {},
		Long:    "Fits:\n.dotted and 'quoted'\n'first\n\nOn Linux:\n\n#### Linux:\n\n\tquartet fit a\\b\n\tquartet fit c\n\nEnd.",
		Example: "  quartet fit x",
	}
	root.AddCommand(c)
	c.Flags().StringP("out", "o", "", "folder <out>, 'this' one")
	c.Flags().Int("count", 3, "how many")
	c.Flags().Bool("secret", false, "not told")
	if err := c.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	want := `.nh
.TH "QUARTET-FIT" "1" "Jan 1970" "quartet v1.2.3" "Quartet"

.SH NAME
quartet-fit - Fit a <file>


.SH SYNOPSIS
\fBquartet fit FILE [flags]\fP


.SH DESCRIPTION
Fits:
\&.dotted and 'quoted'
\&'first

.PP
On Linux:

.SS Linux:
.EX
quartet fit a\\b
quartet fit c
.EE

.PP
End.


.SH OPTIONS
\fB--count\fP=3
	how many

.PP
\fB-h\fP, \fB--help\fP[=false]
	help for fit

.PP
\fB-o\fP, \fB--out\fP=""
	folder <out>, 'this' one


.SH EXAMPLE
.EX
  quartet fit x
.EE


.SH SEE ALSO
\fBquartet(1)\fP
`
	if diff := cmp.Diff(want, string(manual(c, "quartet-fit"))); diff != "" {
		t.Errorf("manual (-want +got):\n%s", diff)
	}
}
