package kubeclient

import (
	"errors"
	"io/fs"
	"os"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// LoadingRules says where kubeconfigs are read from: a path alone or, where that is empty, KUBECONFIG or the usual file. It is an
// error when one of them is no regular file. The null device is taken for one that is empty.
func LoadingRules(path string) (*clientcmd.ClientConfigLoadingRules, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	for _, file := range rules.GetLoadingPrecedence() {
		if err := inputfile.Regular(file); err != nil && file != os.DevNull && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return rules, nil
}
