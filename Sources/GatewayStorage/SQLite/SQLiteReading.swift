import GRDB
import GatewayCore

/// Something that SQL can be read from.
protocol SQLiteReading: Sendable {
    /// Reads one consistent picture, away from event loops.
    ///
    /// - Throws: `storeUnavailable`; `cancelled` when the surrounding task was.
    func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws(GatewayError) -> T
}
