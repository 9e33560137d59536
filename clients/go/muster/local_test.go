package muster

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	musterv1 "muster.dev/api/muster/v1"
)

func fill(t *testing.T, directory string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(directory, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func pathsOf(t *testing.T, directory string, rulesAbove bool) []string {
	t.Helper()
	local, err := readTree(directory, 1<<30, rulesAbove, "")
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, entry := range local.tree.GetEntries() {
		found = append(found, string(entry.GetPath()))
	}
	return found
}

func TestEntriesHaveWhatTheFilesHave(t *testing.T) {
	directory := t.TempDir()
	fill(t, directory, map[string]string{"a": "1", "b/run.sh": "22", "key": "333"})
	err := errors.Join(os.Chmod(filepath.Join(directory, "b/run.sh"), 0o755), os.Chmod(filepath.Join(directory, "key"), 0o600),
		os.Mkdir(filepath.Join(directory, "empty"), 0o755), os.Symlink("b/run.sh", filepath.Join(directory, "link")))
	if err != nil {
		t.Fatal(err)
	}
	local, err := readTree(directory, 1<<30, false, "")
	if err != nil || !slices.Equal(pathsOf(t, directory, false), []string{"a", "b/run.sh", "empty", "key", "link"}) {
		t.Fatal(err, local)
	}
	entries := local.tree.GetEntries()
	again := &musterv1.FileTree{}
	if !entries[1].GetExecutable() || entries[0].GetExecutable() || !entries[3].GetOwnerOnly() || entries[0].GetOwnerOnly() ||
		string(entries[4].GetLinkTarget()) != "b/run.sh" || local.tree.GetTotalBytes() != 6 ||
		proto.Unmarshal(local.data, again) != nil || !proto.Equal(again, local.tree) {
		t.Fatal(local.tree)
	}
}

func TestRulesLeaveFilesOut(t *testing.T) {
	directory := t.TempDir()
	fill(t, directory, map[string]string{".git/config": "", ".gitignore": "*.log\n/build/\n!keep.log\n", ".musterignore": "secret\n", "a.log": "",
		"keep.log": "", "build/x": "", "sub/build/x": "", "sub/a.log": "", "secret": "", "sub/.gitignore": "!a.log\n"})
	found := pathsOf(t, directory, false)
	if !slices.Equal(found, []string{".gitignore", ".musterignore", "keep.log", "sub/.gitignore", "sub/a.log", "sub/build/x"}) {
		t.Fatal(found)
	}
}

func TestRulesAboveCountForAWorkingDirectoryAlone(t *testing.T) {
	directory := t.TempDir()
	fill(t, directory, map[string]string{".git/info/exclude": "x\n", ".gitignore": "*.log\n", "sub/a.log": "", "sub/x": "", "sub/y": ""})
	sub := filepath.Join(directory, "sub")
	if above, alone := pathsOf(t, sub, true), pathsOf(t, sub, false); !slices.Equal(above, []string{"y"}) ||
		!slices.Equal(alone, []string{"a.log", "x", "y"}) {
		t.Fatal(above, alone)
	}
}

func TestASkyignoreCountsInPlaceOfGits(t *testing.T) {
	directory := t.TempDir()
	fill(t, directory, map[string]string{".skyignore": "b\n", ".gitignore": "a\n", "a": "", "b": ""})
	if found := pathsOf(t, directory, false); !slices.Equal(found, []string{".gitignore", ".skyignore", "a"}) {
		t.Fatal(found)
	}
}

// Random directories and patterns: git's own answers.
func TestGitLeavesOutTheSameFiles(t *testing.T) {
	chance := rand.New(rand.NewPCG(20, 20))
	names := []string{"a", "b", "ab", "a.c", "x y", "[a]", "b-"}
	patterns := []string{"a", "*.c", "/a", "a/", "!a", "**/b", "a/**", "a/**/b", "[ab]", "[!a]", "[^a]*", "[a-b]b", "a*b", "?", `\[a\]`, `x\ y`,
		"# no", "b ", "!*.c", "[[:alpha:]]", "[]a]", "a[", "/*/b", "b/a/", "[b-]*"}
	for range 60 {
		directory := t.TempDir()
		for range 12 {
			parts := make([]string, 1+chance.IntN(3))
			for at := range parts {
				parts[at] = names[chance.IntN(len(names))]
			}
			path := filepath.Join(directory, filepath.Join(parts...))
			// A part that is a file already makes no directory: such a path is left out.
			if os.MkdirAll(filepath.Dir(path), 0o755) == nil && !isDirectory(path) {
				fill(t, filepath.Dir(path), map[string]string{filepath.Base(path): "x"})
			}
		}
		var rules strings.Builder
		for range 4 {
			fmt.Fprintln(&rules, patterns[chance.IntN(len(patterns))])
		}
		fill(t, directory, map[string]string{".gitignore": rules.String()})
		if err := exec.Command("git", "init", "-q", directory).Run(); err != nil {
			t.Fatal(err)
		}
		list := exec.Command("git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard")
		list.Dir = directory
		output, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		listed := strings.FieldsFunc(string(output), func(one rune) bool { return one == 0 })
		slices.Sort(listed)
		found := slices.DeleteFunc(pathsOf(t, directory, false), func(path string) bool { return isDirectory(filepath.Join(directory, path)) })
		slices.Sort(found)
		if !slices.Equal(found, listed) {
			t.Fatalf("%q: found %q, git %q", rules.String(), found, listed)
		}
	}
}

func TestWhatNoJobTakesIsRefused(t *testing.T) {
	directory := t.TempDir()
	fill(t, directory, map[string]string{"large": strings.Repeat("x", 100), "small": "x"})
	if _, err := readTree(directory, 50, false, ""); !errors.Is(err, ErrBadRequest) || !strings.Contains(err.Error(), `101 bytes of files, and 50`) ||
		!strings.Contains(err.Error(), `"large" (100)`) {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(directory, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readTree(directory, 1<<30, false, ""); err == nil || !strings.Contains(err.Error(), `"pipe" is no file`) {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/a", "a/", "a//b", "a/../b", ".", strings.Repeat("x", 256), "a\x00b"} {
		if faultOfPath(path) == "" {
			t.Errorf("%q", path)
		}
	}
}

func TestQuantitiesAreThoseOfJobFiles(t *testing.T) {
	for text, want := range map[string]uint64{"512M": 512e6, "1.5G": 1.5e9, "16Gi": 16 << 30, "32GB": 32e9, "7": 7, "0.1Ki": 103} {
		if found, err := size(text, "Memory"); err != nil || found != want {
			t.Error(text, found, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "1.5.2G", "2000Ti", "1e3"} {
		if _, err := size(text, "Memory"); !errors.Is(err, ErrBadRequest) {
			t.Errorf("%q", text)
		}
	}
	for text, want := range map[string]string{"8": ":8000", "H100": "H100:1000", "H100:8": "H100:8000", "H100:0.5": "H100:500", "0": ":0"} {
		found, err := gpus(text)
		if err != nil || fmt.Sprintf("%s:%d", found.GetType(), found.GetCountMillis()) != want {
			t.Error(text, found, err)
		}
	}
	for _, text := range []string{"", "H100:", ":8", "H100:0", "8.0001", "a b"} {
		if _, err := gpus(text); !errors.Is(err, ErrBadRequest) {
			t.Errorf("%q", text)
		}
	}
	for _, cpus := range []float64{-1, 1e9, 0.0001} {
		if _, err := (Job{Script: "true", CPUs: cpus}).Message(); !errors.Is(err, ErrBadRequest) {
			t.Error(cpus)
		}
	}
}

func TestAJobWinsOverItsSpec(t *testing.T) {
	base := &musterv1.JobSpec{Name: "base", Nodes: 3, Priority: 5, Env: map[string]string{"A": "1", "B": "1"}}
	spec, err := Job{Args: []string{"true"}, Name: "mine", Env: map[string]string{"B": "2"}, GPUs: "H100:2", Time: time.Hour, Retries: Times(0),
		Spec: base}.Message()
	if err != nil || spec.GetName() != "mine" || spec.GetNodes() != 3 || spec.GetPriority() != 5 || spec.GetEnv()["A"] != "1" ||
		spec.GetEnv()["B"] != "2" || spec.GetResources().GetGpus()[0].GetType() != "H100" || spec.GetTimeLimit().GetSeconds() != 3600 ||
		spec.GetRetry().GetMaxRuns() != 1 || base.GetEnv()["B"] != "1" {
		t.Fatal(spec, err)
	}
	if _, err := (Job{}).Message(); !errors.Is(err, ErrBadRequest) {
		t.Fatal(err)
	}
}

// ---- the broker and the token are found as the command muster finds them

func tokenOf(body string) string {
	text := tokenPrefix + strings.Repeat(body, 30)[:30]
	digest := sha256.Sum256([]byte(text))
	number := binary.BigEndian.Uint64(digest[:8])
	for range tokenSumCharacters {
		text += string(tokenAlphabet[number%62])
		number /= 62
	}
	return text
}

type userHome struct {
	t    *testing.T
	home string
}

func newHome(t *testing.T) userHome { return userHome{t, t.TempDir()} }

func (p userHome) write(name, text string, mode os.FileMode) string {
	fill(p.t, filepath.Join(p.home, ".config", "muster"), map[string]string{name: text})
	path := filepath.Join(p.home, ".config", "muster", name)
	if err := os.Chmod(path, mode); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p userHome) load(options Options, variables ...string) (*config, error) {
	return load(options, func(name string) string {
		for at := 0; at < len(variables); at += 2 {
			if variables[at] == name {
				return variables[at+1]
			}
		}
		return map[string]string{"HOME": p.home}[name]
	})
}

func (p userHome) expect(want string, options Options, variables ...string) {
	p.t.Helper()
	if found, err := p.load(options, variables...); err != nil || found.address.text != want {
		p.t.Fatal(found, err)
	}
}

const contexts = "# Written by: muster context\ncurrent: \"lab\"\ncontexts:\n  \"lab\":\n    broker: \"127.0.0.1:7070\"\n  \"far\":\n" +
	"    broker: \"127.0.0.1:7071\"\n    token_file: \"%s\"\n"

func TestEachSourceWinsOverTheNext(t *testing.T) {
	home := newHome(t)
	home.expect("unix:"+home.home+"/.local/state/muster/broker.sock", Options{})
	home.expect("unix:/run/s/muster/broker.sock", Options{}, "XDG_STATE_HOME", "/run/s")
	home.write("config.yaml", "broker: 127.0.0.1:1\n", 0o600)
	home.expect("127.0.0.1:1", Options{})
	home.write("contexts.yaml", contexts, 0o600)
	home.expect("127.0.0.1:7070", Options{})
	home.expect("127.0.0.1:7071", Options{Token: tokenOf("a")}, "MUSTER_CONTEXT", "far")
	home.expect("127.0.0.1:2", Options{}, "MUSTER_CONTEXT", "far", "MUSTER_BROKER", "127.0.0.1:2")
	home.expect("127.0.0.1:7070", Options{Context: "lab"}, "MUSTER_BROKER", "127.0.0.1:2")
	home.expect("127.0.0.1:3", Options{Broker: "127.0.0.1:3"}, "MUSTER_BROKER", "127.0.0.1:2")
	if _, err := home.load(Options{Context: "near"}); !errors.Is(err, ErrConfiguration) ||
		!strings.Contains(err.Error(), `no context "near"; there are: far, lab`) {
		t.Fatal(err)
	}
}

func TestTheTokenOfAContextGoesToNoOtherBroker(t *testing.T) {
	home := newHome(t)
	path := home.write("token", tokenOf("a")+"\n", 0o600)
	home.write("contexts.yaml", fmt.Sprintf(contexts, path), 0o600)
	for _, one := range []struct {
		want      string
		options   Options
		variables []string
	}{
		{tokenOf("a"), Options{Context: "far"}, nil}, {tokenOf("b"), Options{Context: "far", Token: tokenOf("b")}, nil},
		{tokenOf("b"), Options{Context: "far"}, []string{"MUSTER_TOKEN", tokenOf("b")}}, {"", Options{Broker: "127.0.0.1:3"}, nil},
	} {
		found, err := home.load(one.options, one.variables...)
		if err != nil {
			t.Fatal(err)
		}
		if token, err := found.token(); err != nil || token != one.want {
			t.Error(one, token, err)
		}
	}
}

func TestABadTokenIsRefusedAndNotShown(t *testing.T) {
	home := newHome(t)
	path := home.write("token", tokenOf("a"), 0o644)
	if _, err := home.load(Options{TokenFile: path}); !errors.Is(err, ErrConfiguration) || !strings.Contains(err.Error(), "mode 0644") {
		t.Fatal(err)
	}
	damaged := tokenOf("a")[:39] + "!"
	_, err := home.load(Options{}, "MUSTER_TOKEN", damaged)
	if !errors.Is(err, ErrConfiguration) || !strings.Contains(err.Error(), "MUSTER_TOKEN has no whole token") || strings.Contains(err.Error(), damaged[4:20]) {
		t.Fatal(err)
	}
	for _, broker := range []string{"broker.lab:7070", "http://broker.lab:7070"} {
		found, err := home.load(Options{Broker: broker, Token: tokenOf("a")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := found.authorization(); err == nil || !strings.Contains(err.Error(), "in the clear") {
			t.Fatal(broker, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"unix:/run/b.sock": "unix /run/b.sock http://localhost false true", "unix:///run/a b.sock": "unix /run/a b.sock http://localhost false true",
		"127.0.0.1:7070": "tcp 127.0.0.1:7070 http://127.0.0.1:7070 false true", "[::1]:7070": "tcp [::1]:7070 http://[::1]:7070 false true",
		"broker.lab:7070":     "tcp broker.lab:7070 http://broker.lab:7070 false false",
		"http://localhost:80": "tcp localhost:80 http://localhost:80 true true", "https://lab/muster/": "tcp lab:443 https://lab/muster true false",
	} {
		at, err := parseAddress(text)
		if found := fmt.Sprint(at.network, " ", at.target, " ", at.url, " ", at.connect, " ", at.staysHere); err != nil || found != want {
			t.Error(text, found, err)
		}
	}
	for _, text := range []string{"", "unix:", "unix:/" + strings.Repeat("x", 107), "host", ":1", "host:0", "host:65536", "::1:7070", "[::x]:1",
		"/run/b.sock", "ho st:1", "http://", "https://ada@lab"} {
		if _, err := parseAddress(text); !errors.Is(err, ErrConfiguration) || !strings.Contains(err.Error(), "write unix:PATH, HOST:PORT") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := newHome(t).load(Options{Broker: "tls:broker:7443"}); err == nil || !strings.Contains(err.Error(), "needs the CA") {
		t.Fatal(err)
	}
}
