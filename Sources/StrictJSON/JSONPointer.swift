/// Names one place in a JSON document, as RFC 6901 writes it.
package struct JSONPointer: Hashable, Sendable, CustomStringConvertible {
    /// The pointer's text: empty for the whole document, else tokens that each start with `/`.
    package private(set) var description: String

    /// The longest name, in Unicode scalars, that stands in a pointer whole.
    private static let maxNameScalars = 256

    /// Creates the pointer to the whole document.
    package init() {
        self.description = ""
    }

    /// Points to a member of the object this pointer names.
    ///
    /// A pointer is for people to read: names beyond 256 Unicode scalars, which no protocol has, are cut.
    ///
    /// - Parameter key: The member's name, unescaped; `~` and `/` in it become `~0` and `~1` (RFC 6901, section 3).
    /// - Returns: The longer pointer.
    package func appending(_ key: String) -> JSONPointer {
        var pointer = self
        pointer.description.append("/")
        let scalars = key.unicodeScalars
        let end = scalars.index(scalars.startIndex, offsetBy: Self.maxNameScalars, limitedBy: scalars.endIndex)
        for scalar in scalars[..<(end ?? scalars.endIndex)] {
            switch scalar {
            case "~": pointer.description.append("~0")
            case "/": pointer.description.append("~1")
            default: pointer.description.unicodeScalars.append(scalar)
            }
        }
        if let end, end < scalars.endIndex { pointer.description.append("…") }
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
