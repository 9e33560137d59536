package muster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	musterv1 "muster.dev/api/muster/v1"
)

// A treeWriter writes the files of a run below a directory of this machine, whatever the cluster sends: nothing is written outside
// of the target, links that are there are not followed, a file gets its name when it is whole, and links are made last.
type treeWriter struct {
	target, name string
	root         string // where what came is now
	began        bool
	file         *os.File
	place        string // of the file
	mode         os.FileMode
	links        []fetchedLink
	isFile       bool // what was asked for is a file: nothing comes after it
	leftOut      []LeftOut
}

// No program reads a longer list of left-out files, and a hostile cluster could fill the memory with one.
const maxLeftOut = 10_000

// A link is made after everything else.
type fetchedLink struct{ place, path, target string }

func (w *treeWriter) take(piece *musterv1.FetchFilesResponse) error {
	switch part := piece.GetPiece().(type) {
	case *musterv1.FetchFilesResponse_Entry:
		if err := w.endFile(); err != nil {
			return err
		}
		return w.begin(part.Entry)
	case *musterv1.FetchFilesResponse_Chunk:
		if w.file == nil {
			return refused(nil, "the broker sent bytes of no file")
		}
		_, err := w.file.Write(part.Chunk)
		return err
	case *musterv1.FetchFilesResponse_LeftOut:
		if len(w.leftOut) == maxLeftOut {
			return refused(ErrTooMuch, fmt.Sprintf("more than %d files are left out; fetch a part of %q", maxLeftOut, w.name))
		}
		code := strings.TrimPrefix(part.LeftOut.GetCode().String(), "FILE_LEFT_OUT_CODE_")
		w.leftOut = append(w.leftOut, LeftOut{Path: string(part.LeftOut.GetPath()), Why: part.LeftOut.GetWhy(), Code: code})
	}
	return nil
}

// finish ends the last file and makes the links.
func (w *treeWriter) finish() error {
	if err := w.endFile(); err != nil {
		return err
	}
	for _, link := range w.links {
		// A link that was just made may be part of the path of the next one.
		if err := w.checkWay(link.path); err != nil {
			return err
		}
		if err := os.Remove(link.place); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Symlink(link.target, link.place); err != nil {
			return err
		}
	}
	return nil
}

// abandon removes an incomplete file.
func (w *treeWriter) abandon() {
	if w.file != nil {
		_ = w.file.Close()
		_ = os.Remove(w.file.Name())
		w.file = nil
	}
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

func (w *treeWriter) begin(entry *musterv1.FileTreeEntry) error {
	path := string(entry.GetPath())
	if !w.began {
		return w.beginRoot(path, entry)
	}
	fault := faultOfPath(path)
	if w.isFile {
		fault = "comes after a file that was all that was asked for"
	}
	if fault != "" {
		return refused(nil, fmt.Sprintf("the broker sent a file that is refused: %q %s", path, fault))
	}
	if err := w.checkWay(path); err != nil {
		return err
	}
	place := filepath.Join(w.root, path)
	switch entry.GetKind() {
	case musterv1.FileKind_FILE_KIND_DIRECTORY:
		return makeDirectory(place)
	case musterv1.FileKind_FILE_KIND_SYMLINK:
		if fault := faultOfLink(path, string(entry.GetLinkTarget())); fault != "" {
			return refused(nil, fmt.Sprintf("the broker sent a link that is refused: %q %s", path, fault))
		}
		w.links = append(w.links, fetchedLink{place, path, string(entry.GetLinkTarget())})
		return nil
	case musterv1.FileKind_FILE_KIND_FILE:
		return w.open(place, entry)
	}
	return refused(nil, fmt.Sprintf("the broker sent a file that is refused: %q is neither a file nor a directory nor a link", path))
}

// beginRoot takes the first entry, which is what was asked for: a directory or a file.
func (w *treeWriter) beginRoot(path string, entry *musterv1.FileTreeEntry) error {
	kind := entry.GetKind()
	if path != "" {
		return refused(nil, fmt.Sprintf("the broker sent a file that is refused: %q comes before what was asked for", path))
	}
	if kind != musterv1.FileKind_FILE_KIND_DIRECTORY && kind != musterv1.FileKind_FILE_KIND_FILE {
		return refused(nil, fmt.Sprintf("the broker sent a file that is refused: %q is neither a file nor a directory", w.name))
	}
	w.began, w.root = true, w.target
	w.isFile = kind == musterv1.FileKind_FILE_KIND_FILE
	isWhole := (w.name == "" || w.name == ".") && !w.isFile
	if isDirectory(w.target) && !isWhole {
		base := filepath.Base(w.name)
		if w.name == "" || base == "." || base == "/" {
			base = "files"
		}
		w.root = filepath.Join(w.target, base)
	}
	switch {
	case w.isFile:
		return w.open(w.root, entry)
	case w.root != w.target:
		return makeDirectory(w.root)
	}
	return os.MkdirAll(w.root, 0o755)
}

func makeDirectory(place string) error {
	if isLink(place) {
		return refused(nil, place+" is a link, and a directory is to be there; remove it")
	}
	return os.MkdirAll(place, 0o755)
}

func (w *treeWriter) open(place string, entry *musterv1.FileTreeEntry) (err error) {
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	w.file, err = os.CreateTemp(filepath.Dir(place), ".muster-")
	w.place, w.mode = place, 0o644
	if entry.GetOwnerOnly() {
		w.mode = 0o600
	}
	if entry.GetExecutable() {
		w.mode |= w.mode & 0o444 >> 2
	}
	return err
}

// checkWay lets no directory on the way be a link, which may lead anywhere.
func (w *treeWriter) checkWay(path string) error {
	way := w.root
	parts := strings.Split(path, "/")
	for _, part := range parts[:len(parts)-1] {
		way = filepath.Join(way, part)
		if isLink(way) {
			return refused(nil, way+" is a link, and a directory is to be there; remove it")
		}
	}
	return nil
}

func (w *treeWriter) endFile() error {
	if w.file == nil {
		return nil
	}
	file := w.file
	w.file = nil
	err := file.Chmod(w.mode)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), w.place)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// FetchOptions says what is fetched.
type FetchOptions struct {
	// Path is a file or a directory, relative to the run's working directory; "." is all of it. Default: "results", which is the
	// results directory if the working directory has nothing of that name.
	Path string
	// To is a directory of this machine, below which it is then, or the name that it gets there. Default: ".".
	To   string
	Run  uint32 // 0: the latest
	Rank uint32
}

// FetchResult is the result of a copy.
type FetchResult struct {
	// Path is the path of the copy. It is empty if everything was left out.
	Path string
	// LeftOut lists the files that exist but were not sent.
	LeftOut []LeftOut
}

// LeftOut is a file that was not sent.
type LeftOut struct {
	Path string // relative to what was asked for; empty: that itself
	Why  string // "is a socket"
	Code string // "PATH_INVALID", "SPECIAL_FILE", "LINK_INVALID", "UNREADABLE"; "UNSPECIFIED": the agent is of an earlier release
}

// Fetch copies a file or a directory of a run to this machine. The result names the files that the cluster does not send, such as
// sockets: these are no error.
func (c *Client) Fetch(ctx context.Context, job uint64, options FetchOptions) (FetchResult, error) {
	if options.Path == "" {
		options.Path = "results"
	}
	if options.To == "" {
		options.To = "."
	}
	request := &musterv1.FetchFilesRequest{JobId: job, Run: options.Run, Rank: options.Rank}
	if options.Path != "." {
		request.Path = []byte(options.Path)
	}
	writer := &treeWriter{target: options.To, name: options.Path}
	defer writer.abandon()
	var broken error
	err := receive(ctx, c, c.services.files.FetchFiles, request, func(piece *musterv1.FetchFilesResponse) bool {
		broken = writer.take(piece)
		return broken == nil
	})
	if broken != nil {
		return FetchResult{}, broken
	}
	if ended := endOf(ctx, err); ended != nil {
		return FetchResult{}, ended
	}
	if err != nil {
		return FetchResult{}, fromConnect(err)
	}
	if err := writer.finish(); err != nil {
		return FetchResult{}, err
	}
	return FetchResult{Path: writer.root, LeftOut: writer.leftOut}, nil
}
