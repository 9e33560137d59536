# Looks at, lists and reads files of a run; for /bin/sh, with GNU's coreutils and find.
#   sh run_files.sh VERB ROOT DIRECTORY PATH [WORD...]
# A name may have any bytes: it is never taken for a pattern, an option or more than one word. Exit codes: 81 there is
# no working directory, 82 the path leads out of it, 83 it is no file, 84 the file was replaced meanwhile, 1 as the
# words on stderr say.
LC_ALL=C
export LC_ALL
verb=$1 root=$2 directory=$3 path=$4
shift 4
missing=81

# Sets `at` to the shell's directory as the kernel knows it; the shell's own word may be an earlier one. Newlines at its
# end count.
where() {
  at=$(env pwd -P && printf x)
  at=${at%?x}
}

# Enters a directory; if it cannot, stat says why.
into() {
  cd -P -- "$1" 2>/dev/null && return
  stat -L -- "$1/." >/dev/null || exit "$missing"
  exit 1
}

inside() {
  where
  case $at/ in
    "$work"/*) ;;
    *) exit 82 ;;
  esac
}

# Goes to the directory of a name; `name` is relative to that directory from there on. A link is followed to its target.
to_name() {
  name=$1
  [ "$2" = follow ] && [ -L "./$name" ] || return 0
  if [ -d "./$name" ]; then
    into "./$name"
    name=.
  else
    target=$(realpath -e -- "./$name" && printf x) || exit 1
    target=${target%?x}
    into "${target%/*}/"
    name=${target##*/}
  fi
  inside
}

# NAME OFFSET BYTES; with `is_watched` the file's identity goes to stderr. A link that has come into the file's place is not
# followed, nor a pipe waited for.
read_part() {
  to_name "$1" follow
  [ ! -e "./$name" ] || [ -f "./$name" ] || exit 83
  before=
  [ -z "$is_watched" ] || before=$(stat -c %d:%i -- "./$name") || exit 1
  dd if="./$name" bs=65536 iflag=fullblock,skip_bytes,count_bytes,nofollow,nonblock skip="$2" count="$3" status=none || exit 1
  [ -z "$is_watched" ] || [ "$before" = "$(stat -c %d:%i -- "./$name")" ] || exit 84
  printf %s "$before" >&2
}

into "$root"
where
root=${at%/}
into "./$directory"
where
[ "$at" = "$root/$directory" ] || exit 82
work=$at
missing=1

# The last name of the path is looked up in its directory.
last=${path##*/}
[ "$last" = "$path" ] || {
  into "./${path%/*}"
  inside
}
[ "$last" != .. ] || exit 82

case $verb in
  look) # follow | stay
    to_name "${last:-.}" "$1"
    stat --printf '%f %s\n' -- "./$name" || exit 1
    [ ! -L "./$name" ] || readlink -n -- "./$name"
    ;;
  list)
    to_name "${last:-.}" follow
    into "./$name"
    inside
    exec find . -mindepth 1 -maxdepth 1 -printf '%m %s %y\0%f\0%l\0'
    ;;
  read) # MARK [NAME OFFSET BYTES]... : of the directory of the path; or OFFSET BYTES: of the path itself
    mark=$1
    shift
    is_watched=
    [ $# != 2 ] || {
      is_watched=yes
      set -- "$last" "$@"
    }
    exec 3>&1
    while [ $# -gt 0 ]; do
      words=$(read_part "$1" "$2" "$3" 2>&1 >&3)
      printf '\n%s %s %s\0' "$mark" $? "$words"
      shift 3
    done
    ;;
esac
exit 0
