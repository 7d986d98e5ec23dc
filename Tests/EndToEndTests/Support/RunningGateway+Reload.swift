import Foundation
import ProcessTestKit

@testable import FCMGateway

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension RunningGateway {
    /// A gauge's or counter's value on the admin listener.
    func metric(_ name: String) async throws -> String? {
        let text = try await Reply.to("GET", "\(self.adminAddress)/metrics").text
        return text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
            .map { String($0.dropFirst(name.count + 1)) }
    }

    /// Sends SIGHUP and waits until the log has what came of it.
    ///
    /// - Parameter count: how many reloads the log has then.
    /// - Throws: when the process ends before.
    func reload(expecting count: Int) async throws {
        self.process.signal(SIGHUP)
        _ = try await self.process.errors.first { text -> Bool? in
            let ends = text.matches(of: #/"message":"The configuration was (not )?reloaded/#)
            return ends.count >= count ? true : nil
        }
    }
}
