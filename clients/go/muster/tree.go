package muster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	musterv1 "muster.dev/api/muster/v1"
)

// The rules of docs/files.md, as clients/cpp/uploads/local_tree.h has them.
const (
	maxEntries   = 50_000
	maxPathBytes = 1024
	maxNameBytes = 255
	maxTreeBytes = 16 << 20
	// People write such files, or copy one of some kB from a collection.
	maxIgnoreFileBytes = 1 << 20
	chunkBytes         = 262_144
	// An error about too many bytes names this many files.
	maxNamed = 3
	leaveOut = "leave it out by a .musterignore file (in the form of .gitignore)"
	remedy   = "leave what the job does not need out by a .musterignore file (in the form of .gitignore), or keep data on the " +
		"cluster's storage and name its path there"
)

// A directory that can be uploaded.
type localTree struct {
	tree    *musterv1.FileTree
	data    []byte // the tree's own, a file like the others
	sha256  string // of these
	sources map[string]string
}

// sizes has the files by digest, the tree itself among them.
func (t *localTree) sizes() map[string]uint64 {
	found := map[string]uint64{t.sha256: uint64(len(t.data))}
	for _, entry := range t.tree.GetEntries() {
		if entry.GetKind() == musterv1.FileKind_FILE_KIND_FILE {
			found[entry.GetSha256()] = entry.GetSizeBytes()
		}
	}
	return found
}

func refusedFile(root, why string) *Error {
	return &Error{Message: root + ": " + why, Code: "INVALID_ARGUMENT", kind: ErrBadRequest}
}

func changed(message string) *Error {
	return &Error{Message: message, Code: "ABORTED", kind: ErrConflict}
}

// faultOfPath is the fault of a path of a tree; empty: none.
func faultOfPath(path string) string {
	if path == "" || strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "\x00") {
		return "is no relative path of a file"
	}
	if len(path) > maxPathBytes {
		return fmt.Sprintf("has more than %d bytes", maxPathBytes)
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return `has an empty part, or "." or ".."`
		}
		if len(part) > maxNameBytes {
			return fmt.Sprintf("has a part of more than %d bytes", maxNameBytes)
		}
	}
	return ""
}

// faultOfLink is the fault of a link by the place where it leads, whatever else is there; empty: none.
func faultOfLink(path, target string) string {
	if target == "" || len(target) > maxPathBytes || strings.Contains(target, "\x00") {
		return "is a link that leads nowhere"
	}
	if strings.HasPrefix(target, "/") {
		return "is a link with an absolute target; use a relative one, or " + leaveOut
	}
	depth := strings.Count(path, "/")
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return "is a link that leads out of the tree; " + leaveOut
		}
	}
	return ""
}

type walk struct {
	root    string
	rules   ignoreRules
	prefix  string // of paths in rules: from the root of the repository to ours
	ignore  string // the name of the files with rules
	entries []*musterv1.FileTreeEntry
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func walkTree(root string, rulesAbove bool) ([]*musterv1.FileTreeEntry, error) {
	w := &walk{root: root, ignore: ".gitignore"}
	if isFile(filepath.Join(root, ".skyignore")) {
		w.ignore = ".skyignore"
	} else if err := w.rulesOfRepository(rulesAbove); err != nil {
		return nil, err
	}
	err := w.enter("")
	return w.entries, err
}

func (w *walk) addRules(path, base string) error {
	if !isFile(path) {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxIgnoreFileBytes+1))
	if err == nil && len(data) > maxIgnoreFileBytes {
		err = refusedFile(path, "has more than 1 MiB, which is no list of patterns")
	}
	if err == nil {
		w.rules.add(data, base)
	}
	return err
}

func (w *walk) rulesOfRepository(rulesAbove bool) error {
	absolute, err := filepath.Abs(w.root)
	if err != nil {
		return err
	}
	if absolute, err = filepath.EvalSymlinks(absolute); err != nil {
		return err
	}
	repository := absolute
	for {
		if _, err := os.Lstat(filepath.Join(repository, ".git")); err == nil {
			break
		}
		if !rulesAbove || repository == "/" {
			return nil
		}
		repository = filepath.Dir(repository)
	}
	if err := w.addRules(filepath.Join(repository, ".git", "info", "exclude"), ""); err != nil {
		return err
	}
	below, err := filepath.Rel(repository, absolute)
	if err != nil || below == "." {
		return err
	}
	above := repository
	for part := range strings.SplitSeq(below, "/") {
		if err := w.addRules(filepath.Join(above, ".gitignore"), w.prefix); err != nil {
			return err
		}
		above = filepath.Join(above, part)
		w.prefix += part + "/"
	}
	return nil
}

// enter adds the contents of a directory, whose path is empty or ends with '/'.
func (w *walk) enter(path string) error {
	rules, entries := len(w.rules.rules), len(w.entries)
	for _, name := range []string{w.ignore, ".musterignore"} {
		if err := w.addRules(filepath.Join(w.root, path+name), w.prefix+path); err != nil {
			return err
		}
	}
	names, err := os.ReadDir(filepath.Join(w.root, path))
	if err != nil {
		return err
	}
	for _, one := range names {
		if err := w.take(path + one.Name()); err != nil {
			return err
		}
	}
	w.rules.rules = w.rules.rules[:rules]
	// Only an empty directory needs an entry of its own.
	if path != "" && len(w.entries) == entries {
		_, err = w.add(strings.TrimSuffix(path, "/"), musterv1.FileKind_FILE_KIND_DIRECTORY)
	}
	return err
}

func (w *walk) add(path string, kind musterv1.FileKind) (*musterv1.FileTreeEntry, error) {
	if len(w.entries) == maxEntries {
		return nil, refusedFile(w.root, fmt.Sprintf("has more than %d files, the most that a job may bring along from one directory; %s",
			maxEntries, remedy))
	}
	made := &musterv1.FileTreeEntry{Path: []byte(path), Kind: kind}
	w.entries = append(w.entries, made)
	return made, nil
}

func (w *walk) take(path string) error {
	if filepath.Base(path) == ".git" {
		return nil
	}
	source := filepath.Join(w.root, path)
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	if w.rules.leaveOut(w.prefix+path, info.IsDir()) {
		return nil
	}
	if fault := faultOfPath(path); fault != "" {
		return refusedFile(w.root, fmt.Sprintf("%q %s; %s", path, fault, remedy))
	}
	switch {
	case info.IsDir():
		return w.enter(path + "/")
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(source)
		if err != nil {
			return err
		}
		if fault := faultOfLink(path, target); fault != "" {
			return refusedFile(w.root, fmt.Sprintf("%q %s", path, fault))
		}
		entry, err := w.add(path, musterv1.FileKind_FILE_KIND_SYMLINK)
		if err == nil {
			entry.LinkTarget = []byte(target)
		}
		return err
	case info.Mode().IsRegular():
		entry, err := w.add(path, musterv1.FileKind_FILE_KIND_FILE)
		if err == nil {
			setMode(entry, info)
		}
		return err
	}
	return refusedFile(w.root, fmt.Sprintf("%q is no file, directory or link, but a device, a pipe or a socket; remove it, or name it in a "+
		".musterignore file", path))
}

func setMode(entry *musterv1.FileTreeEntry, info fs.FileInfo) {
	entry.Executable = info.Mode()&0o100 != 0
	entry.OwnerOnly = info.Mode()&0o077 == 0
	entry.SizeBytes = uint64(info.Size())
}

// digest sets size and digest to those of the bytes read, which may be fewer than before, and never more.
func digest(path string, entry *musterv1.FileTreeEntry) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(file, int64(entry.SizeBytes)+1))
	if err != nil {
		return err
	}
	if uint64(size) > entry.SizeBytes {
		return changed(fmt.Sprintf("%s has changed: it had %d bytes a moment ago and has more now", path, entry.SizeBytes))
	}
	entry.SizeBytes, entry.Sha256 = uint64(size), hex.EncodeToString(sum.Sum(nil))
	return nil
}

// readTree reads a directory, or a file, which becomes a tree of one under that name.
func readTree(path string, maxBytes uint64, rulesAbove bool, name string) (*localTree, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, refused(ErrConfiguration, "cannot read "+path+": "+withoutPath(err))
	}
	var entries []*musterv1.FileTreeEntry
	switch {
	case info.IsDir():
		entries, err = walkTree(path, rulesAbove)
	case info.Mode().IsRegular():
		if name == "" {
			name = filepath.Base(path)
		}
		entries = []*musterv1.FileTreeEntry{{Path: []byte(name), Kind: musterv1.FileKind_FILE_KIND_FILE}}
		setMode(entries[0], info)
	default:
		return nil, refusedFile(path, "is neither a file nor a directory")
	}
	if err != nil {
		return nil, err
	}
	if err := checkBytes(path, entries, maxBytes); err != nil {
		return nil, err
	}
	made := &localTree{tree: &musterv1.FileTree{}, sources: map[string]string{}}
	for _, entry := range entries {
		if entry.GetKind() != musterv1.FileKind_FILE_KIND_FILE {
			continue
		}
		source := path
		if info.IsDir() {
			source = filepath.Join(path, string(entry.GetPath()))
		}
		if err := digest(source, entry); err != nil {
			return nil, err
		}
		made.sources[entry.GetSha256()] = source
	}
	return made, made.finish(entries)
}

func checkBytes(path string, entries []*musterv1.FileTreeEntry, most uint64) error {
	total := uint64(0)
	for _, entry := range entries {
		total += entry.GetSizeBytes()
	}
	if total <= most {
		return nil
	}
	largest := slices.Clone(entries)
	slices.SortStableFunc(largest, func(one, other *musterv1.FileTreeEntry) int {
		return int(int64(other.GetSizeBytes()) - int64(one.GetSizeBytes()))
	})
	var named []string
	for _, entry := range largest[:min(maxNamed, len(largest))] {
		named = append(named, fmt.Sprintf("%q (%d)", entry.GetPath(), entry.GetSizeBytes()))
	}
	return refusedFile(path, fmt.Sprintf("has %d bytes of files, and %d are the most that a job may bring along; the largest are %s; %s", total,
		most, strings.Join(named, ", "), remedy))
}

func (t *localTree) finish(entries []*musterv1.FileTreeEntry) error {
	slices.SortFunc(entries, func(one, other *musterv1.FileTreeEntry) int {
		return strings.Compare(string(one.Path), string(other.Path))
	})
	t.tree.Entries = entries
	for _, entry := range entries {
		t.tree.TotalBytes += entry.GetSizeBytes()
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(t.tree)
	if err != nil {
		return err
	}
	if len(data) > maxTreeBytes {
		return &Error{Message: fmt.Sprintf("the list of files has %d bytes, and %d are the most; %s", len(data), maxTreeBytes, remedy),
			Code: "INVALID_ARGUMENT", kind: ErrBadRequest}
	}
	sum := sha256.Sum256(data)
	t.data, t.sha256 = data, hex.EncodeToString(sum[:])
	return nil
}

// layout is the directory of an upload and the name of a lone file there.
func layout(path, place string) (directory, name string, err error) {
	if strings.HasPrefix(place, "/") || strings.HasPrefix(place, "~") {
		return "", "", refused(ErrBadRequest, fmt.Sprintf("Files: %q is a place of the cluster, which all its jobs share; write a relative "+
			"path, which is one of the run's own directory", place))
	}
	for strings.HasPrefix(place, "./") {
		place = place[2:]
	}
	place = strings.TrimRight(place, "/")
	if place == "." {
		place = ""
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return place, "", nil
	}
	if place == "" {
		return "", "", refused(ErrBadRequest, "Workdir: "+path+" is no directory of this machine; files go under Job.Files")
	}
	at := strings.LastIndex(place, "/")
	return place[:max(at, 0)], place[at+1:], nil
}

// isConflict returns whether a file has changed while it was read.
func isConflict(err error) bool { return errors.Is(err, ErrConflict) }
