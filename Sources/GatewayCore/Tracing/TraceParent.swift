/// A caller's place in a distributed trace: the field `traceparent` (W3C Trace Context, section 3.2).
package struct TraceParent: Sendable, Hashable {
    /// The trace's id: 32 hexadecimal digits in lower case, not all of them zero.
    package let traceID: String
    /// The id of the caller's span: 16 hexadecimal digits in lower case, not all of them zero.
    package let spanID: String
    /// Two hexadecimal digits; the lowest bit says whether the trace is recorded.
    package let flags: String

    /// Reads `version-traceid-parentid-flags`; `nil` for text of another form or an id of zeros.
    ///
    /// What a later version than 00 puts behind the flags, or into their other bits, is left out (section 4.3).
    package init?(_ text: String) {
        let parts = text.split(separator: "-", maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[0].utf8.count == 2, parts[0] != "ff", parts[1].utf8.count == 32,
            parts[2].utf8.count == 16, parts[3].utf8.count == 2, parts[0] != "00" || parts.count == 4,
            parts[..<4].allSatisfy({ $0.utf8.allSatisfy(Self.isLowerHex) }),
            parts[1].contains(where: { $0 != "0" }), parts[2].contains(where: { $0 != "0" })
        else { return nil }
        self.traceID = String(parts[1])
        self.spanID = String(parts[2])
        self.flags = parts[0] == "00" ? String(parts[3]) : Self.isSampled(parts[3]) ? "01" : "00"
    }

    /// Whether whoever began the trace has it recorded.
    package var isSampled: Bool { Self.isSampled(self.flags[...]) }

    /// The field's value, of version 00.
    package var text: String { "00-\(self.traceID)-\(self.spanID)-\(self.flags)" }

    private static func isSampled(_ flags: Substring) -> Bool {
        (UInt8(flags, radix: 16) ?? 0) & 1 == 1
    }

    private static func isLowerHex(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
        default: false
        }
    }
}
