import EventLoopHTTP
import HTTPTypes
import NIOCore
import Testing

extension HTTPClientPool {
    /// The error an exchange ends with, which has to be one.
    func failedExchange(
        _ request: HTTPClientRequest = HTTPClientRequest(method: .get, path: "/"),
        within amount: TimeAmount = .seconds(600)
    ) async throws -> HTTPClientError {
        try await #require(throws: HTTPClientError.self) {
            try await self.execute(request, deadline: .now() + amount)
        }
    }
}
