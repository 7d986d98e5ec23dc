package import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What one of the process's streams leads to, and what may be written to it.
package struct Terminal: Sendable {
    /// Whether somebody watches: the stream is a terminal.
    package let isTerminal: Bool
    private let environment: [String: String]

    /// Looks at a stream.
    ///
    /// - Parameters:
    ///   - handle: the stream.
    ///   - environment: the process's variables.
    package init(_ handle: FileHandle, environment: [String: String]) {
        self.init(isTerminal: isatty(handle.fileDescriptor) == 1, environment: environment)
    }

    /// States what a stream is.
    package init(isTerminal: Bool, environment: [String: String]) {
        self.isTerminal = isTerminal
        self.environment = environment
    }

    /// Whether words may be coloured.
    ///
    /// `NO_COLOR` forbids it everywhere; `CLICOLOR_FORCE` demands it everywhere else; without either, terminals that can
    /// show colours get them.
    package var showsColour: Bool {
        if self.isSet("NO_COLOR") { return false }
        if self.isSet("CLICOLOR_FORCE"), self.environment["CLICOLOR_FORCE"] != "0" { return true }
        return self.rewritesLines && self.environment["CLICOLOR"] != "0"
    }

    /// Whether a line can be written over: a terminal that is not a dumb one.
    package var rewritesLines: Bool {
        self.isTerminal && self.isSet("TERM") && self.environment["TERM"] != "dumb"
    }

    private func isSet(_ variable: String) -> Bool {
        self.environment[variable]?.isEmpty == false
    }
}
