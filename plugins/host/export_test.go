package host

import (
	"encoding/base64"
	"encoding/pem"
	"os"
	"testing"
)

// Certificate is one as a handshake carries it.
func Certificate(t *testing.T) string {
	t.Helper()
	text, _, err := newTLS()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(text))
	return base64.RawStdEncoding.EncodeToString(block.Bytes)
}

// Trusted is trusted.
func Trusted(owner uint32, us int) bool { return trusted(owner, us) }

// CheckPermissions is checkPermissions.
func CheckPermissions(path string, ownerOf func(os.FileInfo) (uint32, bool)) error {
	return checkPermissions(path, ownerOf)
}

// FileOwner is fileOwner.
func FileOwner(info os.FileInfo) (user uint32, known bool) { return fileOwner(info) }

// KillStrays is killStrays.
func KillStrays(folder string) { killStrays(folder) }
