// Output-stationary systolic array: a block of ROWS (pixels) x COLS (channels) sums is in the
// array; the depth passes by, input to the right and weights down. Each sum is read in the cycle
// after its last product (one port for each element: ideal), and the next block may start in it.
//
// PRELOAD=0: a block starts when the last one's last product is done. PRELOAD=1: at once.
// `delay` is in systolic.v.

module output_element (
    input wire clk, input wire reset,
    input wire signed [7:0] a, input wire signed [7:0] w, input wire first,
    output reg signed [7:0] a_right, output reg signed [7:0] w_down, output reg first_right,
    output reg signed [31:0] sum
);
    always @(posedge clk) begin
        a_right <= a;
        w_down <= w;
        first_right <= !reset && first;
        sum <= (first ? 32'sd0 : sum) + a * w;
    end
endmodule

module outputs #(parameter ROWS = 4, parameter COLS = 4, parameter PRELOAD = 1) (
    input  wire clk, input wire reset,
    input  wire start, output reg done,
    output wire entering,         // elements of input and weights enter the first row and column
    output wire leaving,          // the last element's sum is presented to its accumulator
    input  wire [6:0] depth,      // at least 1
    input  wire [4:0] across,     // blocks of channels, less one
    input  wire [9:0] blocks,     // in all; channels first
    input  wire [1:0] host_write, // 1 input [block of pixels, depth], 2 weights [block of channels, depth]
    input  wire [7:0] host_bank,  // row, column; of sums (3) row * COLS + column
    input  wire [11:0] host_address,
    input  wire [31:0] host_data,
    output wire [31:0] host_sum   // sums [block]
);
    localparam [9:0] THROUGH = ROWS + COLS - 2;

    reg [9:0] to_stream, drain, block;
    reg [6:0] step;
    reg [4:0] block_down, block_across;

    wire first = to_stream != 0 && step == 0 && (PRELOAD != 0 || drain == 0);
    wire streaming = first || step != 0;
    wire last = streaming && step == depth - 7'd1;
    assign entering = streaming;

    // {last of the tile, valid, block}: element (r, c) has its sum r + c + 1 cycles after the last step
    wire [11:0] tag [0:ROWS+COLS-1];
    assign leaving = tag[ROWS+COLS-2][10];
    delay #(12, 1) way (clk, reset, {last && to_stream == 10'd1, last, block}, tag[0]);

    always @(posedge clk) begin
        if (streaming) step <= last ? 7'd0 : step + 7'd1;
        if (last) begin
            to_stream <= to_stream - 10'd1;
            block <= block + 10'd1;
            block_across <= block_across == across ? 5'd0 : block_across + 5'd1;
            if (block_across == across) block_down <= block_down + 5'd1;
        end
        drain <= last ? THROUGH : drain != 0 ? drain - 10'd1 : 10'd0;
        done <= leaving && tag[ROWS+COLS-2][11];
        if (start) begin
            to_stream <= blocks;
            block <= 0;
            block_down <= 0;
            block_across <= 0;
        end
        if (reset) begin
            done <= 0;
            to_stream <= 0;
            step <= 0;
            drain <= 0;
        end
    end

    wire signed [7:0] a [0:ROWS-1][0:COLS], w [0:ROWS][0:COLS-1];
    wire start_sum [0:ROWS-1][0:COLS];
    wire signed [31:0] sum [0:ROWS-1][0:COLS-1];
    wire [31:0] read [0:ROWS*COLS-1];
    assign host_sum = read[host_bank];

    genvar r, c;
    generate
        for (r = 0; r < ROWS + COLS - 1; r = r + 1) begin : diagonal
            delay #(12, 1) next (clk, reset, tag[r], tag[r+1]);
        end
        for (r = 0; r < ROWS; r = r + 1) begin : input_bank
            reg signed [7:0] memory [0:2047];
            always @(posedge clk)
                if (host_write == 1 && host_bank == r) memory[host_address[10:0]] <= host_data[7:0];
            delay #(9, r) skew (clk, reset,
                {first, memory[{block_down, step[5:0]}]}, {start_sum[r][0], a[r][0]});
        end
        for (c = 0; c < COLS; c = c + 1) begin : weight_bank
            reg signed [7:0] memory [0:2047];
            always @(posedge clk)
                if (host_write == 2 && host_bank == c) memory[host_address[10:0]] <= host_data[7:0];
            delay #(8, c) skew (clk, reset, memory[{block_across, step[5:0]}], w[0][c]);
        end
        for (r = 0; r < ROWS; r = r + 1) begin : array_row
            for (c = 0; c < COLS; c = c + 1) begin : array_column
                output_element e (clk, reset, a[r][c], w[r][c], start_sum[r][c],
                    a[r][c+1], w[r+1][c], start_sum[r][c+1], sum[r][c]);
                reg [31:0] sums [0:1023];
                wire [9:0] at = tag[r+c][9:0];
                always @(posedge clk)
                    if (host_write == 3 && host_bank == r * COLS + c)
                        sums[host_address[9:0]] <= host_data;
                    else if (tag[r+c][10]) sums[at] <= sums[at] + sum[r][c];
                assign read[r*COLS+c] = sums[host_address[9:0]];
            end
        end
    endgenerate
endmodule
