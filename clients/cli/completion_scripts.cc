#include "clients/cli/completion_scripts.h"

namespace muster::cli {
namespace {

// Readline replaces only the part of a word behind the last "=" or ":", and lists what it is given:
// descriptions must not be there when one value is put into the line.
constexpr std::string_view kBash =
    R"SH(# Completion of muster for bash, by `muster completion bash`.

_muster() {
	local line=${COMP_LINE:0:COMP_POINT} value description rest=:none kept='' i
	local -a values=() descriptions=()
	COMPREPLY=()
	while IFS=$'\t' read -r value description; do
		case $value in
			:none | :files | :directories) rest=$value ;;
			*)
				values+=("$value")
				descriptions+=("$description")
				;;
		esac
	done < <(command muster __complete --line "$line" 2>/dev/null)
	local word=${line##*[[:blank:]]}
	[[ $word == *[=:]* && $COMP_WORDBREAKS == *[=:]* ]] && kept=${word%"${word##*[=:]}"}
	for i in "${!values[@]}"; do
		value=${values[i]#"$kept"}
		[[ $value == *[=:] ]] && compopt -o nospace
		# The line gets a name as one word, whatever is in it.
		[[ $value == *[!A-Za-z0-9._:,=/@%+~-]* ]] && printf -v value %q "$value"
		# 63: readline lists the values after a second tab.
		if ((COMP_TYPE == 63 && ${#values[@]} > 1)) && [[ ${descriptions[i]} ]]; then
			value+="  (${descriptions[i]})"
		fi
		COMPREPLY+=("$value")
	done
	compopt -o nosort
	case $rest in
		:files) compopt -o default ;;
		:directories) compopt -o dirnames ;;
	esac
}

complete -F _muster muster
)SH";

constexpr std::string_view kZsh = R"SH(#compdef muster
# Completion of muster for zsh, by `muster completion zsh`.

_muster() {
	local value description rest=:none
	local -a typed values open
	(( CURRENT > 2 )) && typed=("${(@Q)words[2,CURRENT-1]}")
	while IFS=$'\t' read -r value description; do
		case $value in
			:none | :files | :directories) rest=$value ;;
			*[=:]) open+=("${value//:/\\:}${description:+:$description}") ;;
			*) values+=("${value//:/\\:}${description:+:$description}") ;;
		esac
	done < <(command muster __complete "${typed[@]}" "${(Q)PREFIX}" 2>/dev/null)
	(( $#values )) && _describe -V muster values
	(( $#open )) && _describe -V muster open -S ''
	case $rest in
		:files) compset -P '*='; _files ;;
		:directories) compset -P '*='; _files -/ ;;
	esac
}

(( $+functions[compdef] )) && compdef _muster muster
[[ $funcstack[1] == _muster ]] && _muster "$@"
return 0
)SH";

constexpr std::string_view kFish =
    R"SH(# Completion of muster for fish, by `muster completion fish`.

function __muster_complete
	set -l typed (commandline -opc)
	set -e typed[1]
	set -l word (commandline -ct)
	for line in (command muster __complete $typed "$word" 2>/dev/null)
		switch $line
			case :none
			case :files
				__fish_complete_path (string replace -r '^--[^=]*=' '' -- "$word")
			case :directories
				__fish_complete_directories (string replace -r '^--[^=]*=' '' -- "$word")
			case '*'
				echo -- $line
		end
	end
end

complete -c muster -f -k -a '(__muster_complete)'
)SH";

}  // namespace

std::string_view CompletionScript(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : std::string_view();
}

}  // namespace muster::cli
