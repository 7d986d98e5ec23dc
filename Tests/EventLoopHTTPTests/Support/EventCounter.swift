import GatewayTestKit

/// Counts events, and lets a test wait for them instead of for time.
typealias EventCounter = Observed<Int>

extension Observed<Int> {
    convenience init() { self.init(0) }

    var count: Int { self.current }

    func increment() { self.change { $0 += 1 } }

    func wait(for count: Int = 1) async { try? await self.wait { $0 >= count } }
}
