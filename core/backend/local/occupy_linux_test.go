package local

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
)

// occupy locks as many thousandths of a device, bytes of a file, as are the replica's: all of them unless it is told a part. It returns nil when there
// are not so many.
func occupy(device string) *os.File {
	wanted := core.WholeDevice
	if milli, told := os.LookupEnv(agent.ShareVariable); told {
		var err error
		if wanted, err = strconv.Atoi(milli); err != nil {
			return nil
		}
	}
	if owners, told := os.LookupEnv(ownersVariable); told { // so many have all of it
		n, err := strconv.Atoi(owners)
		if err != nil {
			return nil
		}
		wanted /= n
	}
	f, err := os.OpenFile(device, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	const looks = 5 // others come and go while it looks
	var held [core.WholeDevice]bool
	for i := range core.WholeDevice * looks {
		at := i % core.WholeDevice
		if wanted == 0 {
			break
		}
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(at), Len: 1}
		if !held[at] && unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) == nil {
			held[at] = true
			wanted--
		}
	}
	if wanted > 0 {
		_ = f.Close()
		return nil
	}
	return f
}
