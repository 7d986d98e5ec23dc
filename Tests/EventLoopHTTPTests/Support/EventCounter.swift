import GatewayTestKit

/// Counts events, so that a test waits for them instead of sleeping.
typealias EventCounter = Observed<Int>

extension Observed<Int> {
    convenience init() { self.init(0) }

    var count: Int { self.current }

    func increment() { self.change { $0 += 1 } }

    func wait(for count: Int = 1) async { try? await self.wait { $0 >= count } }
}
