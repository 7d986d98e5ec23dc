import HTTPTypes
import Hummingbird
import NIOCore

extension Response {
    /// A JSON answer.
    init(status: HTTPResponse.Status = .ok, json body: ByteBuffer) {
        self.init(
            status: status,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: body)
        )
    }
}
