import NIOCore

extension ChannelOptions.Types.WriteBufferWaterMark {
    /// A channel is writable while nothing written waits for the system to take it.
    ///
    /// Asking a channel whether it is writable costs a fraction of asking how much it has buffered.
    static let unwritableUntilFlushed = Self(low: 1, high: 1)
}
