import Hummingbird
import NIOCore

/// What Hummingbird hands to a request's handler: here the connection or stream, for faults that happen on
/// the wire.
struct EmulatorContext: InitializableFromSource {
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        self.channel = source.channel
    }
}
