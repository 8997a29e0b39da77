// Writes JSON, append-only.

#ifndef KSWEEP_EXAMPLES_COMMON_JSON_H_
#define KSWEEP_EXAMPLES_COMMON_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace examples {

// Appends to one text. The caller nests Begin… and End… properly and writes a
// key before each value of an object; the commas come by themselves.
//
//   JsonWriter json;
//   json.BeginObject();
//   json.Key("name").String("vfs_read");
//   json.EndObject();      // json.text() is {"name":"vfs_read"}
class JsonWriter {
 public:
  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }

  // Puts what follows on a line of its own.
  void Line() { line_ = true; }

  JsonWriter& Key(std::string_view name);

  // Text is bytes, and the output is valid JSON whatever they are: UTF-8 passes
  // as it is, and each byte that is not part of valid UTF-8 becomes \u00XX, so
  // that the byte ff reads as U+00FF.
  void String(std::string_view text);
  void Number(uint64_t number);
  // With a fixed number of decimals.
  void Decimal(double number, int decimals);
  void Bool(bool value);
  void Null();
  // "0xffffffff81234560"; null for 0, an address that is not known.
  void Addr(uint64_t addr);

  const std::string& text() const { return text_; }

 private:
  void Begin(char bracket);
  void End(char bracket);
  // Everything that a key or a value needs in front of it.
  void Separate();
  void Append(std::string_view value);

  std::string text_;
  bool comma_ = false;  // the next key or value is not the first in its place
  bool line_ = false;
};

// Appends `text` with quotes, escaped as described for JsonWriter::String().
void AppendJsonString(std::string_view text, std::string* out);

}  // namespace examples

#endif  // KSWEEP_EXAMPLES_COMMON_JSON_H_
