/// Names one place in a JSON document, as RFC 6901 writes it.
package struct JSONPointer: Hashable, Sendable, CustomStringConvertible {
    /// The pointer's text: empty for the whole document, else tokens that each start with `/`.
    package private(set) var description: String

    /// The longest name, in Unicode scalars, that stands in a pointer whole.
    private static let maxNameScalars = 64

    /// Creates the pointer to the whole document.
    package init() {
        self.description = ""
    }

    /// Points to a member of the object this pointer names.
    ///
    /// A pointer is for people to read: names beyond 64 Unicode scalars, longer than any that a protocol has, are cut.
    ///
    /// - Parameter key: The member's name, unescaped; `~` and `/` in it become `~0` and `~1` (RFC 6901, section 3).
    /// - Returns: The longer pointer.
    package func appending(_ key: String) -> JSONPointer {
        let scalars = key.unicodeScalars
        let end = scalars.index(scalars.startIndex, offsetBy: Self.maxNameScalars, limitedBy: scalars.endIndex)
        var token = [UInt8(ascii: "/")]
        for byte in key[..<(end ?? key.endIndex)].utf8 {
            switch byte {
            case UInt8(ascii: "~"): token += Array("~0".utf8)
            case UInt8(ascii: "/"): token += Array("~1".utf8)
            default: token.append(byte)
            }
        }
        var pointer = self
        pointer.description += String(decoding: token, as: UTF8.self)
        if let end, end < key.endIndex { pointer.description += "…" }
        return pointer
    }

    /// Points to an element of the array this pointer names.
    ///
    /// - Parameter index: The element's position, from 0.
    /// - Returns: The longer pointer.
    package func appending(_ index: Int) -> JSONPointer {
        var pointer = self
        pointer.description.append("/\(index)")
        return pointer
    }

    /// Compares without Unicode normalisation, as member names are compared.
    ///
    /// - Parameters:
    ///   - lhs: A pointer.
    ///   - rhs: Another pointer.
    /// - Returns: Whether both have the same bytes.
    package static func == (lhs: JSONPointer, rhs: JSONPointer) -> Bool {
        lhs.description.utf8.elementsEqual(rhs.description.utf8)
    }

    /// Hashes the bytes that `==` compares.
    ///
    /// - Parameter hasher: The hasher to feed.
    package func hash(into hasher: inout Hasher) {
        for byte in self.description.utf8 {
            hasher.combine(byte)
        }
    }
}
