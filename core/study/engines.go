package study

import (
	"bytes"
	"strings"
	"text/template"
)

// Shards are the parts of a study that an engine runs.
type Shards struct {
	Name         string // of the study
	Study        string // its file
	Out          string // folder of studies
	Dir          string // folder of the study
	Count        int
	Image, Claim string // of Kubernetes: a container image, and a volume claim with the working folder
}

var engineTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"quote": shellQuoted, "last": func(n int) int { return n - 1 }, "label": label,
	"yaml": func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" },
}).Parse(`
{{- define "slurm" -}}
#!/bin/sh
#SBATCH --job-name={{.Name}}
#SBATCH --array=1-{{.Count}}
#SBATCH --cpus-per-task=2
#SBATCH --output={{.Dir}}/slurm-%a.log
# One task for each shard of a study. When all have ended: quartet bench merge {{quote .Dir}}
exec quartet bench {{quote .Study}} --out {{quote .Out}} --shard "$SLURM_ARRAY_TASK_ID/{{.Count}}" -j "${SLURM_CPUS_PER_TASK:-2}"
{{end}}
{{- define "kubernetes" -}}
# One pod for each shard of a study. When all have ended: quartet bench merge {{quote .Dir}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{label .Name}}
spec:
  completionMode: Indexed
  completions: {{.Count}}
  parallelism: {{.Count}}
  backoffLimitPerIndex: 2
  maxFailedIndexes: {{.Count}}
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: quartet
          image: {{yaml .Image}}
          workingDir: /work
          command: [sh, -c]
          args:
            - {{yaml (printf "exec quartet bench %s --out %s --shard \"$((JOB_COMPLETION_INDEX + 1))/%d\" -j 2" (quote .Study) (quote .Out) .Count)}}
          resources:
            requests: {cpu: "2", memory: 2Gi}
          volumeMounts:
            - {name: work, mountPath: /work}
      volumes:
        - name: work
          persistentVolumeClaim: {claimName: {{yaml .Claim}}}
{{end}}`))

// Slurm is a script for sbatch: an array job with a task for each shard.
func (s Shards) Slurm() []byte { return s.render("slurm") }

// Kubernetes is the manifest of an indexed Job with a pod for each shard.
func (s Shards) Kubernetes() []byte { return s.render("kubernetes") }

func (s Shards) render(name string) []byte {
	var b bytes.Buffer
	if err := engineTemplates.ExecuteTemplate(&b, name, s); err != nil {
		panic(err) // the templates fit the struct: a mistake in this package
	}
	return b.Bytes()
}

// shellQuoted is a text as one word of a shell.
func shellQuoted(text string) string {
	special := func(r rune) bool {
		return !strings.ContainsRune("-_./=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// label is a name as Kubernetes takes it.
func label(name string) string {
	mapped := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return "quartet-" + strings.Trim(mapped[:min(len(mapped), 40)], "-")
}
