import EventLoopHTTP
package import GatewayCore
import HTTPTypes
import NIOCore

extension ServerRefusals {
    /// What is needed to log a refusal as every other request is logged.
    package struct Log: Sendable {
        private let accessLog: AccessLog
        private let clock: any WallClock

        /// A log of refusals.
        ///
        /// - Parameters:
        ///   - accessLog: writes the lines.
        ///   - clock: tells the time that request ids begin with.
        package init(_ accessLog: AccessLog, clock: any WallClock) {
            self.accessLog = accessLog
            self.clock = clock
        }

        /// Writes a refusal's line, and tells the caller the id that stands there.
        ///
        /// The request's own id is not looked for: what is refused here is mostly malformed.
        func write(
            _ response: inout HTTPServerResponse,
            to request: HTTPRefusedRequest,
            isShed: Bool
        ) {
            let requestID = UUIDv7.generate(at: self.clock.now())
            response.headers.append(.requestID, requestID)
            let head = request.head
            self.accessLog.write(
                AccessLogEntry(
                    requestID: requestID,
                    method: head.map { HTTPMetrics.label(of: $0.method.rawValue) } ?? "none",
                    route: "none",
                    status: response.status.code,
                    code: response.code,
                    remoteAddress: request.remoteAddress,
                    bytesIn: 0,
                    bytesOut: response.body.readableBytes,
                    duration: .zero,
                    isRefusal: true
                ),
                status: response.status.code,
                isShed: isShed
            )
        }
    }
}
