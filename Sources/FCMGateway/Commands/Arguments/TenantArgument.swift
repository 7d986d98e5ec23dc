import ArgumentParser

/// A tenant's name: `[a-z0-9][a-z0-9-]{0,62}`.
struct TenantArgument: Sendable, Equatable, ExpressibleByArgument {
    /// The name.
    let name: String

    /// Accepts a well-formed name.
    init?(argument: String) {
        guard (1...63).contains(argument.utf8.count), argument.first != "-",
            argument.utf8.allSatisfy({ Self.isAllowed($0) })
        else { return nil }
        self.name = argument
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}
