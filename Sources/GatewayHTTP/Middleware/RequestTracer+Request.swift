import EventLoopHTTP
import GatewayCore
import HTTPTypes
import Hummingbird

extension RequestTracer {
    /// The trace of a request, and the span of the request where spans are recorded; `nil` for a request without either.
    func trace(of head: HTTPRequestHead) -> RequestTrace? {
        let fields = head.fields
        guard self.isRecording else {
            guard let parent = fields[.traceParent] else { return nil }
            return self.handOn(parent: parent, state: fields[.traceState])
        }
        return self.begin(head.method.rawValue) { name in
            HTTPField.Name(name).flatMap { fields[HTTPFieldKey($0)] }
        }
    }

    /// As ``trace(of:)``, for a request that goes through the router.
    func trace(of request: Request) -> RequestTrace? {
        let fields = request.headers
        return self.begin(request.method.rawValue) { name in
            HTTPField.Name(name).flatMap { fields[$0] }
        }
    }
}
