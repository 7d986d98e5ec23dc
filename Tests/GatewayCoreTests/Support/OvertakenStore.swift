import GatewayCore
import GatewayTestKit
import Synchronization

/// A directory's store whose first read sees the tenant `old`, and waits until it is let go; later ones see `new`, and
/// changes are answered as if they were made.
final class OvertakenStore: DirectoryStore {
    private let reads = Atomic(0)
    private let begun = AsyncStream.makeStream(of: Void.self)
    private let released = AsyncStream.makeStream(of: Void.self)

    func firstHasBegun() async {
        for await _ in self.begun.stream { return }
    }

    func releaseFirst() {
        self.released.continuation.yield()
    }

    func load() async throws(GatewayError) -> DirectoryContents {
        let isFirst = self.reads.add(1, ordering: .relaxed).newValue == 1
        var contents = DirectoryContents()
        if let tenant = try? Tenant.sample(isFirst ? "old" : "new") { contents.tenants = [tenant] }
        guard isFirst else { return contents }
        self.begun.continuation.yield()
        for await _ in self.released.stream { break }
        return contents
    }

    func apply(_ change: DirectoryChange) async throws(GatewayError) -> DirectoryContents {
        var contents = DirectoryContents()
        if case .putTenant(let tenant, _) = change { contents.tenants = [tenant] }
        return contents
    }
}
