import Foundation
import NIOHPACK
import NIOHTTP2

/// What an HTTP/2 stream brought until it ended.
struct H2Reply: Sendable {
    var status: Int?
    var headers = HPACKHeaders()
    var body = ""

    /// Why the stream was reset, if it was; `cancel` also for a stream above GOAWAY's last one.
    var reset: HTTP2ErrorCode?

    /// The body's JSON object.
    func json() throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(self.body.utf8)) as? [String: Any] ?? [:]
    }
}
