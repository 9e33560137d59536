// Rows under headings, aligned by what is seen on a terminal.
#ifndef MUSTER_CLIENTS_CLI_TABLE_H_
#define MUSTER_CLIENTS_CLI_TABLE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::cli {

enum class Colour { kNone, kGreen, kRed, kYellow, kCyan, kDim };

// "\x1b[31mtext\x1b[0m", or the text alone if colours are off.
std::string Paint(std::string_view text, Colour colour, bool colours_on);

struct Cell {
  std::string text;  // harmless
  Colour colour = Colour::kNone;
};

// The form of a table.
struct Look {
  bool colours = false;
  size_t width = 0;  // of the terminal, in columns; 0: lines may be as long as they want
  bool csv = false;  // as in RFC 4180, with the headings; "-" is an empty field
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

  Table(std::vector<Column> columns, bool colours_on)
      : Table(std::move(columns), Look{colours_on}) {}
  // If the lines would be wider than the terminal, texts that are too long end with "…": those of
  // the widest columns first, numbers never.
  Table(std::vector<Column> columns, const Look& look);

  void Add(Row row) { rows_.push_back(std::move(row)); }
  // The rows added since the last call, the first time with the headings above. Later calls keep
  // the widths, so that a table can grow page by page; a cell that is too wide then pushes the rest
  // of its line.
  std::string Take();

 private:
  void Decide();
  void Line(const Row& row, std::string* out) const;
  void CsvLine(const Row& row, std::string* out) const;
  // The room for the cell in a line of which so much is taken.
  size_t Room(size_t column, size_t taken) const;

  const std::vector<Column> columns_;
  const Look look_;
  std::vector<size_t> widths_;  // empty: not decided yet
  std::vector<Row> rows_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TABLE_H_
