/// What tracing systems keep of a trace for themselves: the field `tracestate` (W3C Trace Context, section 3.3).
package struct TraceState: Sendable, Hashable {
    /// The most that is handed on, in bytes; the standard asks for no more.
    package static let maxBytes = 512
    /// The most members of a list.
    package static let maxMembers = 32
    private static let maxPartBytes = 256

    /// The field's value: one member or more with commas between them.
    package let text: String

    /// Reads a list of members `key=value`; `nil` for one that is malformed, too long, or names a key twice.
    ///
    /// A list is handed on whole or not at all: nobody is told half of what was said.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.maxBytes else { return nil }
        var keys: Set<String> = []
        var members: [String] = []
        for part in text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            let member = Self.trimmed(part)
            // A list may have members of nothing, which mean nothing.
            guard !member.isEmpty else { continue }
            guard let key = Self.key(of: member), keys.insert(key).inserted, keys.count <= Self.maxMembers
            else { return nil }
            members.append(String(Substring(member)))
        }
        guard !members.isEmpty else { return nil }
        self.text = members.joined(separator: ",")
    }

    private typealias Bytes = Substring.UTF8View

    private static func trimmed(_ bytes: Bytes) -> Bytes {
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let start = bytes.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return start.prefix(0) }
        return start[...last]
    }

    /// The key of a member whose two halves have the form that they should have.
    private static func key(of member: Bytes) -> String? {
        guard let sign = member.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        let (key, value) = (member[..<sign], member[member.index(after: sign)...])
        guard let first = key.first, Self.isLetterOrDigit(first), key.count <= Self.maxPartBytes,
            key.allSatisfy(Self.mayStandInKey), !value.isEmpty, value.count <= Self.maxPartBytes,
            value.allSatisfy(Self.mayStandInValue)
        else { return nil }
        return String(Substring(key))
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: false
        }
    }

    private static func mayStandInKey(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "/"), UInt8(ascii: "@"): true
        default: Self.isLetterOrDigit(byte)
        }
    }

    /// Printable ASCII but for the comma and the equals sign.
    private static func mayStandInValue(_ byte: UInt8) -> Bool {
        (0x20...0x7E).contains(byte) && byte != UInt8(ascii: ",") && byte != UInt8(ascii: "=")
    }
}
