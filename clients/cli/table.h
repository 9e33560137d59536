// Rows under headings, aligned by what is seen on a terminal.
#ifndef MUSTER_CLIENTS_CLI_TABLE_H_
#define MUSTER_CLIENTS_CLI_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

enum class Colour { kNone, kGreen, kRed, kYellow, kCyan, kDim };

// "\x1b[31mtext\x1b[0m", or the text alone if colours are off.
std::string Paint(std::string_view text, Colour colour, bool colours_on);

struct Cell {
  std::string text;  // harmless
  Colour colour = Colour::kNone;
};

// Belongs to one thread.
class Table {
 public:
  // A column is as wide as its heading, its least width and the cells of the first rows to be
  // printed need.
  struct Column {
    std::string heading;
    size_t min_width = 0;
    bool right = false;
  };
  using Row = std::vector<Cell>;

  Table(std::vector<Column> columns, bool colours_on);

  void Add(Row row) { rows_.push_back(std::move(row)); }
  // The rows added since the last call, the first time with the headings above. Later calls keep
  // the widths, so that a table can grow page by page; a cell that is too wide then pushes the rest
  // of its line.
  std::string Take();

 private:
  void Line(const Row& row, std::string* out) const;

  const std::vector<Column> columns_;
  const bool colours_on_;
  std::vector<size_t> widths_;  // empty: not decided yet
  std::vector<Row> rows_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TABLE_H_
