import NIOCore

/// One way to fill a body to its last byte.
///
/// Each field is a small number, so that a shape has neighbours.
struct BodyShape: Hashable {
    /// What stands in the place.
    enum Kind: Int, CaseIterable {
        /// One long text.
        case text
        /// An object of members, or a form's parameters.
        case members
        /// An array of texts.
        case texts
        /// An array of the smallest numbers, or of empty arrays.
        case elements
        /// Objects within objects, each with its share of the members.
        case nested
        /// A number of many digits.
        case number
        /// Nothing but blanks, in front of a word.
        case blanks
    }

    var place = 0
    var kind = Kind.text
    /// What texts and values are made of.
    var unit = 0
    /// What names are made of.
    var keyUnit = 0
    /// What names begin with: nothing, or one that the protocols know.
    var keyStart = 0
    /// An index into the counts of members or elements.
    var count = 2
    /// How many eighths of a member's bytes its name has.
    var keyShare = 1
    /// Whether names differ in their last bytes, not in their first.
    var isAlike = false
    /// Whether the last name is the first once more.
    var repeatsFirst = false

    static let counts = [1, 8, 40, 250, 999, 1_950, 4_990, Int.max]
    /// Pieces of a JSON text's content.
    static let units = [
        "a", #"\""#, #"\n"#, #"a\n"#, #"\\"#, #"\/"#, #"\u0041"#, #"\u00e9"#, #"\u0001"#, #"\ud83d\ude00"#, "\u{E9}",
        "\u{301}", "e\u{301}", "\u{6F22}", "\u{1F600}", "\u{1F469}\u{200D}", "\u{AC01}", "\u{1100}\u{1161}", "1", "0",
        " ",
        "/", "~", ".", "%41", "(", "'a' in topics||", "'a' in topics && ", #"\"\","#, "[1],", "Z", "\u{130}",
    ]
    /// Pieces of a form's content.
    static let formUnits = [
        "a", "%41", "%C3%A9", "%CC%81", "+", "\u{E9}", "\u{301}", "1", "%F0%9F%98%80", "data.", "=", "%", "%00",
    ]
    static let keyStarts = [
        "", "data.", "t", "token", "tokens", "registration_id", "notification", "title", "color", "priority", "google",
        "from",
        "apns-priority", "/", "~",
    ]

    /// The body of a route that this shape stands for.
    func body(for route: BodyRoute) -> ByteBuffer {
        let parts = route.places[self.place % route.places.count]
            .split(
                separator: "%",
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
        var bytes: [UInt8] = []
        bytes.reserveCapacity(route.maxBytes)
        bytes += Array(parts[0].utf8)
        let room = route.maxBytes - parts.reduce(0) { $0 + $1.utf8.count }
        if route.isForm {
            self.writeParameters(room, to: &bytes)
        } else {
            self.write(room, to: &bytes)
        }
        bytes += Array(parts.dropFirst().joined().utf8)
        return ByteBuffer(bytes: bytes)
    }

    // MARK: JSON

    private func write(_ room: Int, to bytes: inout [UInt8]) {
        let unit = Array(Self.units[self.unit % Self.units.count].utf8)
        switch self.kind {
        case .text: Self.writeText(unit, room, to: &bytes)
        case .members:
            self.writeMembers(self.number(atMost: min(1_950, room / 48)), room, to: &bytes) {
                Self.writeText(unit, $0, to: &$1)
            }
        case .texts:
            let count = self.number(atMost: room / 4)
            Self.writeList(count, room, "[", "]", to: &bytes) { _, size, bytes in Self.writeText(unit, size, to: &bytes)
            }
        case .elements:
            let isArray = self.unit.isMultiple(of: 2)
            let count = self.number(atMost: room / (isArray ? 3 : 2) - 1)
            Self.writeList(count, room, "[", "]", to: &bytes) { _, size, bytes in
                bytes += isArray ? [UInt8(ascii: "["), UInt8(ascii: "]")] : [UInt8(ascii: "1")]
                Self.pad(size - (isArray ? 2 : 1), to: &bytes)
            }
        case .nested:
            let depth = 12
            self.writeNested(depth, room, to: &bytes, unit)
        case .number:
            let start = ["1", "0.", "1e", "-0.0", "1."][self.unit % 5]
            bytes += Array(start.utf8)
            bytes += Array(
                repeating: UInt8(ascii: self.keyUnit.isMultiple(of: 2) ? "0" : "7"),
                count: room - start.utf8.count
            )
        case .blanks:
            Self.pad(room - 4, to: &bytes)
            bytes += Array("true".utf8)
        }
    }

    private func number(atMost most: Int) -> Int {
        max(1, min(Self.counts[self.count % Self.counts.count], most))
    }

    private func writeNested(_ depth: Int, _ room: Int, to bytes: inout [UInt8], _ unit: [UInt8]) {
        guard depth > 0, room > 400 else { return Self.writeText(unit, room, to: &bytes) }
        let count = max(1, self.number(atMost: 1_900) / 12)
        self.writeMembers(count + 1, room, to: &bytes, last: room - room / (depth + 1)) { size, bytes in
            if size > room / 2 {
                self.writeNested(depth - 1, size, to: &bytes, unit)
            } else {
                Self.writeText(unit, size, to: &bytes)
            }
        }
    }

    /// Writes an object; the last member takes what the others leave, or a given room.
    private func writeMembers(
        _ count: Int,
        _ room: Int,
        to bytes: inout [UInt8],
        last: Int? = nil,
        _ writeValue: (_ room: Int, _ bytes: inout [UInt8]) -> Void
    ) {
        let keyUnit = Array(Self.units[self.keyUnit % Self.units.count].utf8)
        let start = Array(Self.keyStarts[self.keyStart % Self.keyStarts.count].utf8)
        Self.writeList(count, room, "{", "}", last: last, to: &bytes) { index, size, bytes in
            // A name's quotes, the colon, and two bytes for a value at least.
            let number = Array(String(self.repeatsFirst && index == count - 1 ? 1_000_000 : 1_000_000 + index).utf8)
            let content = max(0, min((size - 5) * self.keyShare / 8, size - 5) - number.count - start.count)
            bytes.append(UInt8(ascii: "\""))
            bytes += start
            if !self.isAlike { bytes += number }
            let isShort = last != nil && size > room / 2
            Self.fill(keyUnit, isShort ? 0 : content, to: &bytes)
            if self.isAlike { bytes += number }
            bytes += [UInt8(ascii: "\""), UInt8(ascii: ":")]
            let written = start.count + number.count + (isShort ? 0 : content) + 3
            writeValue(size - written, &bytes)
        }
    }

    private static func writeList(
        _ count: Int,
        _ room: Int,
        _ open: Character,
        _ close: Character,
        last: Int? = nil,
        to bytes: inout [UInt8],
        _ writeItem: (_ index: Int, _ room: Int, _ bytes: inout [UInt8]) -> Void
    ) {
        bytes += Array(open.utf8)
        var left = room - 2 - (count - 1)
        for index in 0..<count {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            let isLast = index == count - 1
            let size = isLast ? left : (left - (last ?? 0)) / max(1, count - index - (last == nil ? 0 : 1))
            let before = bytes.count
            writeItem(index, max(size, 1), &bytes)
            left -= bytes.count - before
        }
        bytes += Array(close.utf8)
    }

    private static func writeText(_ unit: [UInt8], _ room: Int, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        Self.fill(unit, max(0, room - 2), to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    private static func fill(_ unit: [UInt8], _ room: Int, to bytes: inout [UInt8]) {
        bytes.append(addingCapacity: max(0, room)) { output in
            for _ in 0..<(room / unit.count) {
                for byte in unit { output.append(byte) }
            }
            output.append(repeating: UInt8(ascii: "x"), count: room % unit.count)
        }
    }

    private static func pad(_ room: Int, to bytes: inout [UInt8]) {
        bytes += Array(repeating: UInt8(ascii: " "), count: max(0, room))
    }

    // MARK: Forms

    private func writeParameters(_ room: Int, to bytes: inout [UInt8]) {
        let unit = Array(Self.formUnits[self.unit % Self.formUnits.count].utf8)
        let keyUnit = Array(Self.formUnits[self.keyUnit % Self.formUnits.count].utf8)
        let start = Array(Self.keyStarts[self.keyStart % Self.keyStarts.count].utf8)
        switch self.kind {
        case .text, .texts, .nested, .number: Self.fill(unit, room, to: &bytes)
        case .blanks: bytes += Array(repeating: UInt8(ascii: "&"), count: room)
        case .elements: Self.fill(keyUnit + [UInt8(ascii: "&")], room, to: &bytes)
        case .members:
            let end = bytes.count + room
            let count = self.number(atMost: room / 24)
            for index in 0..<count {
                let size = (end - bytes.count) / (count - index)
                let number = Array(String(self.repeatsFirst && index == count - 1 ? 0 : index).utf8)
                let content = max(0, size - start.count - number.count - 2)
                bytes += start
                if !self.isAlike { bytes += number }
                Self.fill(keyUnit, content * self.keyShare / 8, to: &bytes)
                if self.isAlike { bytes += number }
                bytes.append(UInt8(ascii: "="))
                Self.fill(unit, content - content * self.keyShare / 8, to: &bytes)
                bytes.append(UInt8(ascii: "&"))
            }
        }
    }

    // MARK: Telling

    /// The shape in a few words.
    func description(for route: BodyRoute) -> String {
        let units = route.isForm ? Self.formUnits : Self.units
        func name(_ unit: Int) -> String {
            let text = units[unit % units.count]
            let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "|") }
            return isPlain
                ? text : text.unicodeScalars.map { "U+\(String($0.value, radix: 16))" }.joined(separator: " ")
        }
        var text = "\(route.places[self.place % route.places.count]): \(self.kind) of \(name(self.unit))"
        if [.members, .texts, .elements, .nested].contains(self.kind) {
            text += ", \(Self.counts[self.count % Self.counts.count]) at most"
        }
        if [.members, .nested].contains(self.kind) {
            text += ", names \(Self.keyStarts[self.keyStart % Self.keyStarts.count])\(name(self.keyUnit))"
            text += " (\(self.keyShare)/8\(self.isAlike ? ", alike" : "")\(self.repeatsFirst ? ", one twice" : ""))"
        }
        return text.replacing("|", with: "¦")
    }
}
