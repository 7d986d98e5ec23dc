import Foundation
import GatewayCore
import GatewayTestKit
import Testing

@Suite("UUIDv7")
struct UUIDv7Tests {
    @Test("The text is a UUID of version 7 and the RFC's variant")
    func form() throws {
        for _ in 0..<500 {
            let text = UUIDv7.generate(at: .sample)
            #expect(text.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
            #expect(try #require(UUID(uuidString: text)).uuidString.lowercased() == text)
        }
    }

    @Test(
        "The first 48 bits are the milliseconds since 1970",
        arguments: [
            (0, "00000000-0000"), (1_645_557_742_000, "017f22e2-79b0"), (281_474_976_710_655, "ffffffff-ffff"),
        ] as [(Int64, String)]
    )
    func time(milliseconds: Int64, start: String) {
        #expect(UUIDv7.generate(at: Timestamp(microseconds: milliseconds * 1_000 + 999)).hasPrefix(start))
    }

    @Test("Later ones sort after earlier ones")
    func order() {
        let clock = ManualClock()
        let identifiers = (0..<1_000)
            .map { _ in
                clock.advance(by: .milliseconds(1))
                return UUIDv7.generate(at: clock.now())
            }
        #expect(identifiers == identifiers.sorted())
    }

    @Test("Those of one moment differ, and every free bit varies")
    func random() {
        let identifiers = (0..<2_000).map { _ in Array(UUIDv7.generate(at: .sample)) }
        #expect(Set(identifiers).count == identifiers.count)
        for position in [15, 16, 17, 20, 21, 22] + Array(24..<36) {
            #expect(Set(identifiers.map { $0[position] }).count == 16, "position \(position)")
        }
        #expect(Set(identifiers.map { $0[19] }) == ["8", "9", "a", "b"])
    }
}
